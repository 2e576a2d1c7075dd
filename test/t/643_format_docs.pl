# cells: pg15 pg18
# docs/formats.md: its examples run and give what it shows; it has every format. And changelog-json, whose updates are two documents.

use strict;
use warnings;

use CdcBridge::Decode;
use CdcBridge::Env qw(slurp tree);
use CdcBridge::Export;
use CdcBridge::Postgres;
use JSON::PP ();
use Test::More;

my $postgres = CdcBridge::Postgres->new->allow_output_plugin;
my $text = slurp(tree() . '/docs/formats.md');

# What is another one in each run becomes one word.
sub without_chance
{
	my ($value) = @_;
	return [ map { without_chance($_) } @$value ] if ref $value eq 'ARRAY';
	return $value unless ref $value eq 'HASH';
	my %chance = map { $_ => 1 } qw(lsn commit_lsn xid time ts_ms ts_us ts_ns ts es sequence txId position __position __source_ts_ms);
	return { map { my $v = $value->{$_}; ($_ => $chance{$_} || ($_ eq 'id' && exists $value->{isDdl}) ? defined $v : without_chance($v)) } keys %$value };
}

my ($output, $compared) = ('', 0);
while ($text =~ /^```(sql|json)\n(.*?)^```$/msg)
{
	my ($kind, $block) = ($1, $2);
	if ($kind eq 'sql') { $output = $postgres->psql($block); next; }
	is_deeply(without_chance([ JSON::PP->new->incr_parse($output) ]), without_chance([ JSON::PP->new->incr_parse($block) ]), 'the JSON of example ' . ++$compared);
}
is($compared, 6, 'each format that is text has an example');
$postgres->psql('create extension cdc_bridge');
my ($formats) = $text =~ /^\| `format` \| for .*?\n(.*?)\n\n/ms;
is_deeply([ sort $formats =~ /^\| `([\w-]+)` \|/mg ], [ split(/, /, $postgres->psql(q{select allowed from cdc_list_options() where kind = 'output plugin' and name = 'format'})) ], 'every format is told');
my ($members) = $text =~ /^## Members that others do not have\n(.*?)^## /ms;
is_deeply([ grep { $members !~ /`$_`/ } slurp(tree() . '/src/format/format_place.c') =~ /\\"(\w+)\\":/g ], [], 'every member of _cdc_bridge is told');

# ---- changelog-json
my $export = CdcBridge::Export->new(postgres => $postgres, tables => '{shop.*}', options => '{"format": "changelog-json", "include_key": true}')->setup;
$postgres->psql('create schema shop; create table shop.t (id int primary key, v text, n numeric); insert into shop.t values (7, $$copied$$, 1.0)');
$export->start->wait_for_state('streaming');
$postgres->psql(q{insert into shop.t values (1, 'a', 1.50); update shop.t set v = 'b' where id = 1; update shop.t set id = 2 where id = 1; delete from shop.t where id = 2; alter table shop.t replica identity full;
	insert into shop.t values (3, 'c', null); update shop.t set id = 4 where id = 3; delete from shop.t where id = 4; truncate shop.t});
$export->wait_for_all;
my @got = $export->records;
is(join(' ', map { $_->{value}{op} } @got), '+I +I +U -D +I -D schema +I -U +U -D truncate', 'changelog-json: kinds of changes; schema changes and TRUNCATE in our words');
is_deeply([ map { $_->{value}{data} } @got[ 0 .. 5 ] ],
	[ { id => 7, v => 'copied', n => 1 }, { id => 1, v => 'a', n => 1.5 }, { id => 1, v => 'b', n => 1.5 }, { id => 1 }, { id => 2, v => 'b', n => 1.5 }, { id => 2 } ], 'rows: where the log has only the key');
is_deeply([ map { $_->{value}{data} } @got[ 7 .. 10 ] ], [ map { { id => $_, v => 'c', n => undef } } 3, 3, 4, 4 ], 'rows: where it has the old row');
is_deeply([ map { $_->{key} } @got[ 2 .. 5, 8, 9, 11 ] ], [ { id => 1 }, { id => 1 }, { id => 2 }, { id => 2 }, { id => 3 }, { id => 4 }, undef ], 'each document has its own key');
is_deeply([ map { $_->{value}{_cdc_bridge}{seq} } @got[ 3, 4 ] ], [ 1, 1 ], 'both documents of a change have its place');
$export->drop;
done_testing();
