# M16: an event that lacks names, signs and labels (binlog_row_metadata other than FULL) stops its table, of whatever type, before anything
# of it is applied: whether a value would go into the right column cannot be proved then. Copied anew, the table is right again.

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use CdcBridge::Types;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my @types = CdcBridge::Types::all($source);
my @tables = map { $_->{name} } @types;

$source->sql('create database shop', q{set sql_mode = ''}, 'create table shop.beside (id int primary key, v int)', 'insert into shop.beside values (1, 1)');
for my $type (@types)
{
	my $id = 0;
	$source->sql("create table shop.`$type->{name}` (id int primary key, v $type->{sql}) default charset utf8mb4",
		"insert into shop.`$type->{name}` (id, v) values (1, null), " . join(', ', map { $id++; '(' . ($id + 1) . ", $_)" } @{ $type->{values} }));
}
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables;
is($pipeline->status('tables_stopped'), 0, 'all tables stream');

my %change = (
	insert => sub { my ($type) = @_; return "insert into shop.`$type->{name}` (id, v) values (1000, $type->{values}[0])"; },
	update => sub { my ($type) = @_; return "update shop.`$type->{name}` set v = $type->{values}[0] where id = 1"; },
	delete => sub { my ($type) = @_; return "delete from shop.`$type->{name}` where id = 2"; },
);
# a fingerprint of all that the mirror has
sub contents { return $postgres->psql(join(' union all ', map { "select '$_', md5(string_agg(t::text, e'\\n' order by id)) from shop.\"$_\" t" } @tables) . ' order by 1'); }

my @kinds = sort keys %change;
my $round = 0;
for my $metadata ($source->is_mysql ? 'MINIMAL' : qw(MINIMAL NO_LOG))
{
	# the server's own way: tables that are open keep what they write
	$source->sql("set global binlog_row_metadata = '$metadata'", 'flush tables');
	$pipeline->wait_for_catchup;
	my $before = contents();
	# one event for each table: a second one would find it stopped
	$source->sql(map { $change{ $kinds[ ($_ + $round) % @kinds ] }->($types[$_]) } 0 .. $#types);
	$source->sql(q{set global binlog_row_metadata = 'FULL'}, 'flush tables', 'update shop.beside set v = v + 1');
	$pipeline->wait_for_status('tables_stopped', qr/^${\ scalar(@types)}$/)->wait_for_catchup;
	is($postgres->psql(q{select string_agg(distinct concat_ws(' ', state, last_error_sqlstate, regexp_replace(last_error, '".*"', '...'), substring(last_error_hint for 56)), '; ') from pg_stat_cdc_table where source_table <> 'beside'}),
		'stopped YC005 row event of source table ... lacks metadata Run SET GLOBAL binlog_row_metadata = FULL on the source.', "M16: $metadata: each table is stopped, and the hint says what helps");
	is(contents(), $before, "M16: $metadata: nothing was written");
	$pipeline->is_same("M16: $metadata: the table beside goes on", 'beside');

	$postgres->psql(join(';', map { "select cdc_resync_table('shop_in', 'shop.$_')" } @tables));
	$pipeline->wait_for_status('tables_stopped', qr/^0$/)->wait_for_tables->wait_for_catchup->are_same("M16: $metadata, then copied anew", {}, @tables);
	$round++;
}
is($pipeline->state, 'streaming', 'the pipeline streams');

done_testing();
