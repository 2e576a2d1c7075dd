# Dead letters of outgoing pipelines shipped again: in their order, once through kills, and never over a newer change of their row.
# cells: pg15 pg18
# takes: 25 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Export;
use CdcBridge::Postgres;
use IO::Handle;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $bad = '[{"tables": "shop.*", "projection": "*, 100 / v AS part"}]';
my $good = '[{"tables": "shop.big"}, {"tables": "shop.*", "projection": "*, 100 / nullif(v, 0) AS part"}]';
my $export = CdcBridge::Export->new(postgres => $postgres, options => qq({"on_error": "dead_letter", "transforms": $bad}))->setup;
$postgres->psql(<<'SQL');
create schema shop;
create table shop.t (id int primary key, v int, note text);
create table shop.log (v int, note text); alter table shop.log replica identity full;
create table shop.swap (id int primary key, v int, w int);
create table shop.mark (id serial primary key, v int default 1);
create table shop.big (id int primary key, v int, large text);
alter table shop.big alter large set storage external;
insert into shop.t values (1, 1, 'a'), (2, 0, 'copied'), (3, 0, 'copied, changed'), (4, 4, 'd'), (5, 5, 'e'), (6, 6, 'f');
SQL
$export->start->wait_for_state('streaming');
my $letters = sub { return $postgres->psql("select coalesce(string_agg(operation || coalesce(after ->> 'id', before ->> 'id', '') || ' ' || state, ', ' order by dead_letter_id), '') from cdc_dead_letters where source_table = '$_[0]'"); };
my $alter = sub { my ($rules) = @_; $postgres->psql("select cdc_alter_pipeline('shop_out', options => '{\"transforms\": $rules}')"); $export->wait_for_state('streaming'); return; };
my $ask = sub {
	my ($function, $more) = @_;
	my $request = $postgres->psql("select $function('shop_out'" . ($more // '') . ')');
	$postgres->poll("select state from cdc_dead_letter_requests where request = $request", 'done', 30) or die "not done\n" . $export->describe;
	return $postgres->psql("select settled || ' ' || failed || ' ' || left_alone from cdc_dead_letter_requests where request = $request");
};
my $rows = sub { my ($table) = @_; $export->wait_for_all; my %rows = $export->replay('shop', $table, 'id'); return join(' ', map { "$_=" . ($rows{$_}{part} // '-') } sort { $a <=> $b } keys %rows); };
my $n = 0;

# the sink has something behind what became letters, so that this is not decoded once more, under other rules
my $pass = sub { $postgres->psql('insert into shop.mark default values'); $export->wait_for_all; return; };

# what came since the last time, of a table
my $news = sub {
	my ($table) = @_;
	$export->wait_for_all;
	my @all = $export->records;
	my @new = @all[ $n .. $#all ];
	$n = @all;
	return map { my $row = $_->{after} // $_->{before}; join(' ', $_->{op}, $row->{id} // $row->{note}, $row->{part} // '-', $_->{source}{snapshot}) } grep { ($_->{source}{table} // '') eq $table && $_->{op} } @new;
};

# ---- changes of each kind, and later ones of the same rows
is($letters->('t'), 'snapshot2 waiting, snapshot3 waiting', 'R8: rows of the copy are kept');
$postgres->psql('alter table shop.t replica identity full');
$postgres->psql(<<'SQL');
update shop.t set v = 30 where id = 3;
insert into shop.t values (7, 0, 'inserted'), (8, 0, 'inserted, and deleted again'), (9, 0, 'inserted, and updated');
update shop.t set v = 0 where id = 4;
update shop.t set v = 0, id = 50 where id = 5;
update shop.t set v = 0 where id = 6;
delete from shop.t where id = 6;
delete from shop.t where id = 8;
update shop.t set v = 9 where id = 9;
SQL
$pass->();
is($rows->('t'), '1=100 4=25 5=20 6=16', 'what the receiver has then');
is($letters->('t'), 'snapshot2 waiting, snapshot3 waiting, update3 waiting, insert7 waiting, insert8 waiting, insert9 waiting, update4 waiting, update50 waiting, update6 waiting, delete6 waiting, delete8 waiting, update9 waiting',
	'R8: with old rows that throw, too, everything of such a row waits, in order');
is($ask->('cdc_replay_dead_letters'), '0 12 0', 'as long as the cause is there all fail again');
is($postgres->psql("select count(*), min(attempts), bool_and(error like '%division by zero%') from cdc_dead_letters where state = 'failed'"), '12|2|t', 'with the error');
is($rows->('t'), '1=100 4=25 5=20 6=16', 'and nothing is shipped');
() = $news->('t');
$alter->($good);
is($ask->('cdc_replay_dead_letters'), '12 0 0', 'R8: mended, all are shipped');
is($letters->('t') =~ s/\w+ replayed,? ?//gr, '', 'and are settled');
is_deeply([ $news->('t') ], [ 'r 2 - true', 'r 3 - true', 'u 3 3 true', 'c 7 - true', 'c 8 - true', 'c 9 - true', 'u 4 - true', 'u 50 - true', 'u 6 - true', 'd 6 - true', 'd 8 - true', 'u 9 11 true' ], 'in their order, marked as no part of the stream');
is($rows->('t'), '1=100 2=- 3=3 4=- 7=- 9=11 50=-', 'the receiver has what the table has');
is($ask->('cdc_replay_dead_letters'), '0 0 0', 'once');

$export->{upserts} = 1;

# ---- superseded: nothing comes over a newer change
$postgres->psql('alter table shop.t replica identity default');
$alter->($bad);
$postgres->psql(<<'SQL');
insert into shop.t values (11, 0, 'then changed'), (12, 0, 'then deleted'), (13, 0, 'stays'), (14, 1, 'moves');
update shop.t set v = 0, id = 15 where id = 14;
insert into shop.t values (14, 2, 'another one');
update shop.t set v = 5 where id = 11;
delete from shop.t where id = 12;
SQL
$pass->();
is($letters->('t') =~ s/\w+ replayed,? ?//gr, 'insert11 superseded, insert12 superseded, insert13 waiting, update15 waiting', 'a later change that is shipped supersedes a letter');
like($postgres->psql("select reason from cdc_dead_letters where state = 'superseded' limit 1"), qr/^a later change of its row was shipped, of the transaction that ends at [0-9A-F]+\/[0-9A-F]+$/, 'and its reason is told');
$alter->($good);
() = $news->('t');
is($ask->('cdc_replay_dead_letters', q(, tables => '{shop.t}')), '2 0 0', 'those that are left');
is_deeply([ $news->('t') ], [ 'c 13 - true', 'c 15 - true' ], 'of a change of the key whose old key has a new row only the new half is shipped');
is($rows->('t'), join(' ', map { s/\|$/|-/r =~ tr/|/=/r } split(/\n/, $postgres->psql('select id, 100 / nullif(v, 0) from shop.t order by id'))), 'the receiver has what the table has');

# ---- large values that a later change did not touch
$alter->($bad);
$postgres->psql("insert into shop.big values (1, 0, repeat('x', 4000)); update shop.big set v = 2");
$pass->();
$alter->($good);
is($ask->('cdc_replay_dead_letters'), '1 0 0', 'P1: of a letter whose row has changed since the rest is shipped');
my @big = do { $export->wait_for_all; grep { ($_->{source}{table} // '') eq 'big' && $_->{op} } $export->records };
is(join(' ', map { "$_->{op}:$_->{after}{v}:" . length($_->{after}{large}) } @big), 'u:2:28 u:__debezium_unavailable_value:4000', 'P1: as an update of what is not newer') or diag(explain(\@big));

# ---- without a key; a key that is another one; TRUNCATE; given up
$alter->($bad);
$postgres->psql("insert into shop.log values (0, 'twice'), (0, 'twice'), (0, 'stays'); insert into shop.t values (21, 0, 'x'); insert into shop.swap values (1, 0, 7), (2, 0, 8); insert into shop.big values (2, 0, 'emptied'), (3, 0, 'emptied')");
$postgres->psql('truncate shop.big; insert into shop.big values (4, 0, null)');
$pass->();
$postgres->psql('alter table shop.t alter id type bigint');
$postgres->psql('alter table shop.swap drop column w; alter table shop.swap add column w int');
$alter->($good);
$postgres->psql("delete from shop.log where ctid = (select min(ctid) from shop.log)");
$pass->();
is($letters->('log'), 'insert superseded, insert waiting, insert waiting', 'without a key a row that goes takes one letter along');
is($letters->('big') =~ s/\w+ replayed,? ?//gr, 'insert2 superseded, insert3 superseded, insert4 waiting', 'TRUNCATE takes those before it');
() = $news->('log');
is($ask->('cdc_replay_dead_letters'), '3 3 0', 'all but those whose key is of another type now, or whose columns are others');
is($postgres->psql("select distinct error || ' ' || error_sqlstate from cdc_dead_letters where source_table = 'swap'"), 'columns of table shop.swap were renamed or dropped since the dead letter was made YC004', 'another column of the same name does not get its value');
is_deeply([ $news->('log') ], [ 'c twice - true', 'c stays - true' ], 'rows of a table without a key');
like($postgres->psql("select error || ' ' || error_sqlstate || ' ' || error_hint from cdc_dead_letters where state = 'failed' and source_table = 't'"), qr/^the key of table shop\.t, or the type of a part of it, is another one.* YC004 .*cdc_resync_table/, 'a letter that could be taken for an older row says so');
is($ask->('cdc_discard_dead_letters'), '3 0 0', 'they are given up');
is($postgres->psql("select state || ' ' || reason from cdc_dead_letters where after ->> 'id' = '21'"), 'discarded given up by postgres', 'and says by whom');

# ---- a pipeline that is stopped: the request waits
$alter->($bad);
$postgres->psql("insert into shop.t select i, 0, 'many' from generate_series(1001, 3000) i");
$pass->();
is($postgres->psql("select count(*) from cdc_dead_letters where state = 'waiting'"), '2000', 'many letters');
$export->stop;
$alter = sub { my ($rules) = @_; $postgres->psql("select cdc_alter_pipeline('shop_out', options => '{\"transforms\": $rules}')"); return; };
$alter->($good);
$postgres->psql(q{select cdc_replay_dead_letters('shop_out')});
like($postgres->{messages}, qr/request \d+ waits until pipeline "shop_out" runs/, 'a stopped pipeline: the request waits');
is($postgres->psql("select state from cdc_dead_letter_requests order by request desc limit 1"), 'queued', 'it is done when it runs');

# ---- once, through kills: with letters on their way that the sink has not got, and with such that it has and that are not settled
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"flush_max_ms": 60000, "flush_max_kb": 1048576}')});
$postgres->psql('do $$ begin for i in 1 .. 20000 loop insert into shop.mark default values; commit; end loop; end $$');
my $sent = 'select count(*) from cdc_bridge.dead_letter where chunk_no is not null';
my $shipped = sub { return scalar(grep { ($_->{source}{table} // '') eq 't' && ($_->{op} // '') eq 'c' && $_->{after}{id} > 1000 } $export->records); };
$export->start;
$postgres->poll("$sent", qr/[1-9]/, 30) or die "no letters on their way\n" . $export->describe;
my $old = $postgres->psql('select max(xmin::text::bigint) from cdc_bridge.dead_letter');
$postgres->kill9_process($export->status('pid'));
is($shipped->(), 0, 'killed before the sink has them');
$postgres->poll("$sent and xmin::text::bigint > $old", qr/[1-9]/, 30) or die "no letters on their way again\n" . $export->describe;
open(my $session, '|-', "$postgres->{bindir}/psql", '-qXAt', '-o', '/dev/null', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', 'postgres') or die "psql: $!";
$session->autoflush(1);
print $session "begin; lock table cdc_bridge.dead_letter_request in share mode;\n";
poll_until(sub { return $shipped->() > 0 }, 60) or die "they are not shipped\n" . $export->describe;
cmp_ok($postgres->psql($sent), '>', 0, 'killed before what the sink has is settled');
$postgres->kill9_process($export->status('pid'));
close($session);
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"flush_max_ms": null, "flush_max_kb": null}')});
$postgres->poll("select state from cdc_dead_letter_requests order by request desc limit 1", 'done', 60) or die "not done\n" . $export->describe;
$export->wait_for_all;
my %seen;
$seen{ $_->{after}{id} }++ for grep { ($_->{source}{table} // '') eq 't' && ($_->{op} // '') eq 'c' && $_->{after}{id} > 1000 } $export->records;
is(scalar(keys %seen), 2000, 'R8: killed again and again, each is shipped');
is(scalar(grep { $_ > 1 } values %seen), 0, 'once');
is($postgres->psql("select count(*) filter (where state = 'replayed'), count(*) from cdc_dead_letters where (after ->> 'id')::int > 1000"), '2000|2000', 'and settled');
is($postgres->psql("select settled, failed from cdc_dead_letter_requests order by request desc limit 1"), '2000|0', 'as the request counts');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
