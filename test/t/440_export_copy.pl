# The initial copy of an outgoing pipeline while eight sessions write: rows that were there, and every change once, whatever the key.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Export;
use CdcBridge::Postgres;
use CdcBridge::Writers;
use Test::More;
use Time::HiRes qw(time);

my $seed = $ENV{CDC_SEED} // int(time());
diag("seed $seed (again: CDC_SEED=$seed)");
srand($seed);

my $postgres = CdcBridge::Postgres->new(conf => "autovacuum_naptime = 1s\n");
my $export = CdcBridge::Export->new(postgres => $postgres, options => '{"snapshot_chunk_rows": 37}')->setup;
$postgres->psql(<<'SQL');
create schema shop;
create table shop.item (id int primary key, n int not null default 0, name text, big text);
alter table shop.item alter column big set storage external;
insert into shop.item select i, 0, 'n' || i, case when i % 5 = 0 then repeat(md5(i::text), 90) end from generate_series(1, 2000) i;
create table shop.pair (a int not null, b text collate "C" not null, n int not null default 0);
create unique index pair_key on shop.pair (a desc, b);
alter table shop.pair replica identity using index pair_key;
insert into shop.pair select i % 10, 'b' || i, 0 from generate_series(1, 500) i;
create type shop.mood as enum ('sad', 'ok', 'glad');
create table shop.kinds (at date, price numeric(12,3), mood shop.mood, f float8, n int not null default 0, primary key (mood, at, price, f));
insert into shop.kinds select date '2026-01-01' + i, i / 7.0, (array['sad', 'ok', 'glad'])[i % 3 + 1]::shop.mood, i / 8.0::float8, 0
	from generate_series(1, 400) i;
create table shop.log (what text, n int);
alter table shop.log replica identity full;
insert into shop.log select 'w' || (i % 50), i % 3 from generate_series(1, 300) i;
create table shop.part (id int, v text, primary key (id)) partition by range (id);
create table shop.part_1 partition of shop.part for values from (0) to (500);
create table shop.part_2 partition of shop.part for values from (500) to (100000);
insert into shop.part select i, 'v' || i from generate_series(0, 999) i;
create table shop.other_index (id int not null, code text not null, n int not null default 0);
create unique index code on shop.other_index (code);
alter table shop.other_index replica identity using index code;
insert into shop.other_index select i, 'c' || i from generate_series(1, 300) i;
create table shop.empty (id int primary key);
SQL

# ---- writers of all of it, from before the pipeline is made to after its tables are copied

sub one_transaction
{
	my $i = 1 + int(rand(2400));
	my @write = (
		"insert into shop.item values ($i, 1, 'new', repeat('z', 3000)) on conflict (id) do update set n = shop.item.n + 1",
		"delete from shop.item where id = $i",
		"update shop.item set id = (id + 1200) % 2400 + 1 where id = $i and not exists (select from shop.item x where x.id = ($i + 1200) % 2400 + 1)",
		"update shop.item set id = id - 1 where id = $i and id > 1 and not exists (select from shop.item x where x.id = $i - 1)",
		"update shop.item set n = n + 1 where id between $i and $i + 10",
		"update shop.pair set n = n + 1 where a = $i % 10 and b > 'b3'",
		"update shop.pair set a = 9 - a where b = 'b$i'",
		"delete from shop.pair where b = 'b$i'; insert into shop.pair values ($i % 10, 'b$i') on conflict do nothing",
		"update shop.kinds set mood = 'glad' where at < date '2026-01-01' + $i / 6 and mood = 'sad' and n < 3",
		"update shop.kinds set n = n + 1, price = price + 1 where price < $i / 100.0",
		"insert into shop.log values ('w' || $i % 50, 5); update shop.log set n = n + 1 where what = 'w' || $i % 50",
		"delete from shop.log where what = 'w' || $i % 50 and n > 6",
		"update shop.part set id = (id + 500) % 1000 where id = $i and not exists (select from shop.part x where x.id = ($i + 500) % 1000)",
		"update shop.part set v = v || 'x' where id between $i and $i + 5",
		"update shop.other_index set code = code || 'x' where id = $i",
		"update shop.other_index set n = n + 1 where id % 50 = $i % 50",
	);
	my @sql = map { my $write = $write[ rand @write ]; rand() < 0.15 ? ("savepoint s; $write; rollback to s") : $write } 1 .. 1 + int(rand(4));
	return join(";\n", 'begin', @sql, rand() < 0.9 ? 'commit' : 'rollback') . ";\n";
}

my $writers = CdcBridge::Writers->new(postgres => $postgres, seed => $seed, batch => 20, sql => \&one_transaction);

my $root = CdcBridge::Export->new(postgres => $postgres, name => 'root_out', dir => $export->{dir}, tables => '{shop.part}',
	options => '{"snapshot_chunk_rows": 20, "publish_via_partition_root": true}');
$writers->start(8);
poll_until(sub { return 0 }, 0.5);
$root->start;
$export->start->wait_for_state('streaming', 100);
$root->wait_for_state('streaming', 100);
poll_until(sub { return 0 }, 1);
$writers->end;
$export->wait_for_all;
$root->wait_for_all;

# the replay dies at a row that is copied or inserted while it is there, and at a change of one that is not: so each is there once
my @keys = ([ item => 'id' ], [ pair => 'a,b' ], [ kinds => 'mood,at,price,f' ], [ part_1 => 'id' ], [ part_2 => 'id' ], [ other_index => 'code' ]);
$export->is_replayed('shop', @$_, "P46: copied while eight sessions write: $_->[0]") for @keys;

$root->is_replayed('shop', 'part', 'id', 'P22, P46: partitions under the name of their root');

# rows that nothing tells apart: how often is each there?
my %count;
for my $record (grep { ($_->{source}{table} // '') eq 'log' } $export->records)
{
	$count{"$record->{before}{what} $record->{before}{n}"}-- if $record->{before};
	$count{"$record->{after}{what} $record->{after}{n}"}++ if $record->{after};
}
delete @count{ grep { $count{$_} == 0 } keys %count };
is(join(', ', map { "$_: $count{$_}" } sort keys %count),
	$postgres->psql("select string_agg(k || ': ' || c, ', ' order by k collate \"C\") from (select what || ' ' || n as k, count(*) as c from shop.log group by 1) x"),
	'P46: a table without a key');

my @read = grep { ($_->{op} // '') eq 'r' } $export->records;
cmp_ok(scalar(@read), '>', 3000, 'rows that were there come as op r');
is((grep { $_->{source}{snapshot} ne 'true' || $_->{before} || !$_->{after} } @read), 0, 'of a snapshot, with the row alone');
is($postgres->psql("select count(*) from cdc_bridge.export_chunk"), '0', 'no chunk is kept when all are passed');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();
