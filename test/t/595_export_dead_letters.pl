# on_error "dead_letter" on the way out: a change whose expressions throw is kept, once, also through kills, and all others go on; rows of a copy, too.
# cells: pg15 pg18
# takes: 42 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres,
	options => '{"on_error": "dead_letter", "dead_letter_max_rows": 1000, "transforms": [{"tables": "shop.t", "projection": "*, 100 / v AS part", "filter": "shop.looks(id)"}]}')->setup;
$postgres->psql(<<'SQL');
create schema shop;
create function shop.looks(i int) returns boolean language plpgsql immutable as 'begin return 1000 / (500 - i) < 1000; end';
create table shop.t (id int primary key, v int, note text);
create table shop.other (id int primary key);
insert into shop.t values (1, 1), (2, 2);
SQL
$export->start->wait_for_state('streaming');
my $letters = sub { return $postgres->psql("select string_agg(operation || coalesce(after ->> 'id', before ->> 'id'), ' ' order by dead_letter_id) from cdc_dead_letters where pipeline = 'shop_out' $_[0]"); };
my $rows = sub { $export->wait_for_all; my %rows = $export->replay('shop', 't', 'id'); return join(' ', map { "$_=$rows{$_}{part}" } sort { $a <=> $b } keys %rows); };

# ---- one transaction, with good and bad rows, in a savepoint and after one that is rolled back
$postgres->psql(<<'SQL');
begin;
insert into shop.t values (3, 3, 'good');
insert into shop.t values (4, 0, 'bad value');
savepoint a;
insert into shop.t values (5, 0, 'never');
rollback to a;
insert into shop.t values (500, 1, 'the filter throws');
insert into shop.t values (6, 6, 'good');
insert into shop.other values (1);
commit;
SQL
is($rows->(), '1=100 2=50 3=33 6=16', 'R8: all rows come but those whose expressions throw') or diag($export->describe);
is($letters->(''), 'insert4 insert500', 'R8: these are kept');
is($postgres->psql("select source_schema || '.' || source_table, state, error, error_sqlstate, after ->> 'note', action, file ~ '^[0-9A-F]{24}\$', gtid ~ '^[0-9A-F]+/[0-9A-F]+\$' from cdc_dead_letters order by dead_letter_id limit 1"),
	'shop.t|waiting|column "part" of the projection of table shop.t cannot be computed: division by zero|22012|bad value|2|t|t', 'with their row, the error and the place');
like($postgres->psql("select error from cdc_dead_letters where after ->> 'id' = '500'"), qr/the filter of table shop\.t cannot be evaluated: division by zero/, 'a filter that throws, too');
is(scalar(grep { ($_->{source}{table} // '') eq 'other' } $export->records), 1, 'other tables of the transaction go on');
is($postgres->psql("select count(*) from pg_stat_cdc_export_table where state = 'stopped'"), '0', 'nothing is stopped');
is($export->status('last_error'), '', 'and the pipeline has no error');
unlike($postgres->log_text, qr/bad value/, 'no row is in the log');

# ---- a transaction of bad rows alone; update and delete
$postgres->psql('insert into shop.t values (7, 0); update shop.t set v = 0 where id = 3');
$export->wait_for_all;
$postgres->poll("select count(*) from cdc_dead_letters", '4', 20) or die "they are not written\n";
is($letters->("and error_sqlstate = '22012'"), 'insert4 insert500 insert7 update3', 'also those of transactions of which nothing is shipped');

# ---- once, through kills
my $n = 0;
for my $victim (qw(worker postmaster worker stopped))
{
	my $from = 1000 + 200 * $n++;
	my $pid = $export->status('pid');
	$postgres->psql("do \$\$ begin for i in $from .. $from + 199 loop insert into shop.t values (i, case when i % 10 = 0 then 0 else 5 end); if i % 7 = 0 then commit; end if; end loop; end \$\$");
	if ($victim eq 'worker') { $postgres->kill9_process($pid); }
	elsif ($victim eq 'stopped') { $export->stop->start; }
	else { $postgres->kill9; $postgres->start; }
	$export->wait_for_state('streaming')->wait_for_all;
	is($postgres->psql("select count(*), count(distinct after ->> 'id'), count(distinct (file, \"offset\", action)) from cdc_dead_letters where (after ->> 'id')::int >= 1000"), join('|', (20 * $n) x 3), "$victim: each is kept once");
	my %rows = $export->replay('shop', 't', 'id');
	is(scalar(grep { $_ >= 1000 } keys %rows), 180 * $n, "$victim: and each other row shipped once");
}

# ---- a worker dies between its letters and the flush of what they came with
$export->stop;
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"flush_max_ms": 60000, "flush_max_kb": 1048576}')});
$postgres->psql('do $$ begin for i in 10001 .. 30000 loop insert into shop.t values (i, case when i % 200 = 0 then 0 else 5 end); commit; end loop; end $$');
$export->start;
$postgres->poll("select count(*) > 0 from cdc_dead_letters where (after ->> 'id')::int > 10000", 't', 30) or die "no letters\n" . $export->describe;
$postgres->kill9_process($export->status('pid'));
cmp_ok($postgres->psql("select count(*) from cdc_dead_letters where (after ->> 'id')::int > 10000"), '<', 100, 'killed with a part of the letters written');
$export->wait_for_state('streaming')->wait_for_all;
is($postgres->psql("select count(*), count(distinct after ->> 'id') from cdc_dead_letters where (after ->> 'id')::int > 10000"), '100|100', 'each is kept once');
{
	my %rows = $export->replay('shop', 't', 'id');
	is(scalar(grep { $_ > 10000 } keys %rows), 19900, 'and each other row shipped once');
}

# ---- rows of a copy
my $stopped = sub { return $postgres->psql("select coalesce(string_agg(table_name || ' ' || last_error_sqlstate, ', '), '') from pg_stat_cdc_export_table where state = 'stopped'"); };
my $copied = sub { $postgres->poll("select state from pg_stat_cdc_export_table where table_name = '$_[0]'", qr/^(streaming|stopped)$/, 60) or die "it is not copied\n" . $export->describe; $export->wait_for_all; return; };

# what the receiver lacks is in the letters of the newest copy, and nothing else is
my $is_copied = sub {
	my ($name) = @_;
	my %rows = $export->replay('shop', 't', 'id');
	is($stopped->(), '', "$name: nothing stops");
	is(join(' ', sort keys %rows), join(' ', sort split(/\n/, $postgres->psql('select id from shop.t where v <> 0 and id <> 500'))), "$name: all other rows come");
	is($postgres->psql("select count(*), count(distinct after ->> 'id') from cdc_dead_letters where operation = 'snapshot'"), join('|', ($postgres->psql('select count(*) from shop.t where v = 0 or id = 500')) x 2), "$name: each is kept once");
	return;
};
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"flush_max_ms": null, "flush_max_kb": null, "snapshot_chunk_rows": 500}')});
$export->wait_for_state('streaming');
$postgres->psql(q{select cdc_resync_table('shop_out', 'shop.t')});
$copied->('t');
$is_copied->('a copy');
is($postgres->psql("select gtid is null, action > 0, file ~ '^[0-9A-F]{24}\$', before is null, after ->> 'note', error_sqlstate, changed_at is null from cdc_dead_letters where operation = 'snapshot' and after ->> 'id' = '4'"), 't|t|t|t|bad value|22012|t',
	'with their row, and the number of their chunk');
is($postgres->psql("select sum(rows_copied) from pg_stat_cdc_export_table where table_name = 't'"), $postgres->psql('select count(*) from shop.t where v <> 0 and id <> 500'), 'they do not count as copied');

for my $victim (qw(worker postmaster))
{
	$postgres->psql("delete from cdc_bridge.dead_letter where operation = 'snapshot'");
	$postgres->psql(q{select cdc_resync_table('shop_out', 'shop.t')});
	$postgres->poll("select count(*) > 20 from cdc_dead_letters where operation = 'snapshot'", 't', 60) or die "no letters of a copy\n" . $export->describe;
	if ($victim eq 'worker') { $postgres->kill9_process($export->status('pid')); }
	else { $postgres->kill9; $postgres->start; }
	$export->wait_for_state('streaming', 60);
	$copied->('t');
	$is_copied->("a copy, $victim");
}

# ---- many of them end a chunk early; several processes are not asked
$postgres->psql(q{create table shop.wide (id int primary key, v int, note text); insert into shop.wide select i, i % 2, repeat('x', 4000) from generate_series(1, 6000) i});
$export->wait_for_all;
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"snapshot_chunk_rows": 100000, "snapshot_chunk_kb": 1000000, "transforms": [{"tables": ["shop.t", "shop.wide"], "projection": "*, 100 / v AS part"}]}')});
$export->wait_for_state('streaming');
$postgres->psql(q{delete from cdc_bridge.dead_letter});
$postgres->psql(q{select cdc_resync_table('shop_out', 'shop.wide')});
$copied->('wide');
is($stopped->(), '', 'many rows of a copy that throw do not stop it');
is($postgres->psql("select count(*), count(distinct after ->> 'id'), count(distinct action) > 1 from cdc_dead_letters where source_table = 'wide' and operation = 'snapshot'"), '1000|1000|t', 'of which so many stay as may, of several chunks');
{
	my %wide = $export->replay('shop', 'wide', 'id');
	is(scalar(keys %wide), 3000, 'all others come');
}

# ---- mended: a delete of a row that the receiver never got comes all the same, so it is looked at from behind them
$postgres->psql('delete from shop.t where v = 0 or id = 500');
$export->wait_for_all;
$export->{replayed}{'shop.t'} = { at => scalar(my @all = $export->records), rows => {} };
$postgres->psql(q{delete from cdc_bridge.dead_letter});
$postgres->psql(q{select cdc_resync_table('shop_out', 'shop.t')});
$copied->('t');
my %rows = $export->replay('shop', 't', 'id');
is(join(' ', sort keys %rows), join(' ', sort split(/\n/, $postgres->psql('select id from shop.t'))), 'mended, it is copied anew');
is($postgres->psql("select count(*) from cdc_dead_letters where source_table = 't'"), '0', 'without letters');

# ---- not more than they may be
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"dead_letter_max_rows": 10}')});
$export->wait_for_state('streaming');
$postgres->psql('insert into shop.t select i, 0 from generate_series(50000, 50014) i');
$export->wait_for_all;
$postgres->poll("select count(*), max((after ->> 'id')::int) from cdc_dead_letters", '10|50014', 20);
is($postgres->psql("select count(*), max((after ->> 'id')::int) from cdc_dead_letters"), '10|50014', 'dead_letter_max_rows: the oldest go');

done_testing();
