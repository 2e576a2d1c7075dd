# D19: statements about partitions and tablespaces. Those that move rows without events have the table copied anew, the others do nothing.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"batch_max_ms": 0}')->setup;
sub settle { $pipeline->wait_for_catchup->wait_for_state('streaming')->wait_for_tables->wait_for_catchup; return $pipeline; }
my $partitions = 'partition by range (id) (partition p1 values less than (10), partition p2 values less than (20), partition p3 values less than (30), partition p4 values less than (40))';
$source->sql('create database shop', "create table shop.parted (id int primary key, v int) $partitions", 'create table shop.single (id int primary key, v int)',
	'create table shop.spaced (id int primary key, v int)', 'create table shop.source_of (id int primary key, v int)',
	map({ "insert into shop.parted values ($_, $_)" } 1, 5, 11, 15, 21, 25, 31), map({ "insert into shop.single values ($_, 0)" } 12, 13), 'insert into shop.spaced values (1, 1), (2, 2)', 'insert into shop.source_of values (8, 8)');
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
$postgres->psql('create view on_parted as select * from shop.parted');
sub copies { my ($table) = @_; my $n = () = $postgres->log_text =~ /source table "shop\.$table" of pipeline "shop_in" is copied anew/g; return $n; }

my $copies = 0;
for my $case (
	[ 'alter table shop.parted drop partition p1', 1 ],
	[ 'alter table shop.parted truncate partition p4', 1 ],
	[ 'alter table shop.parted add partition (partition p5 values less than (50))', 0 ],
	[ 'alter table shop.parted exchange partition p2 with table shop.single', 1 ],
	[ 'alter table shop.parted reorganize partition p2 into (partition p0 values less than (12), partition p2 values less than (20))', 0 ],
	[ 'alter table shop.parted analyze partition p2', 0 ],
	[ 'alter table shop.parted remove partitioning', 0 ],
	[ 'alter table shop.parted partition by hash (id) partitions 4', 0 ],
	[ 'alter table shop.parted coalesce partition 2', 0 ])
{
	my ($statement, $moves) = @$case;
	$source->sql($statement, 'insert into shop.parted values (' . (22 + $copies) . ', 100) on duplicate key update v = v + 1');
	settle();
	$copies += $moves;
	is(copies('parted'), $copies, "D19: $statement: " . ($moves ? 'copied anew' : 'nothing is to be done'));
	$pipeline->is_same("D19: and the rows are right", 'parted', 'single');
}
is(copies('single'), 1, 'D19: EXCHANGE PARTITION: the other table too');
is($postgres->psql('select count(*) from on_parted'), $source->query_value('select count(*) from shop.parted'), 'a view goes on');
like($postgres->psql(q{select error from cdc_schema_history where source_table = 'parted' order by change_no limit 1}), qr/rows came or went without events: it is copied anew/, 'the history says why');

# ---- tablespaces
{
	my $data = "$source->{dir}/data/shop";
	my $dbh = $source->connect;
	$dbh->do('use shop');
	$dbh->do('flush tables source_of for export');
	for my $suffix (qw(ibd cfg)) { system('cp', '-p', "$data/source_of.$suffix", "$data/../../$suffix") == 0 or die "cp: $?"; }
	$dbh->do('unlock tables');
	$dbh->do('alter table spaced discard tablespace');
	for my $suffix (qw(ibd cfg)) { system('mv', "$data/../../$suffix", "$data/spaced.$suffix") == 0 or die "mv: $?"; }
	$dbh->do('alter table spaced import tablespace');
	$source->sql('insert into shop.spaced values (9, 9)');
	settle();
	$pipeline->is_same('D19: DISCARD and IMPORT TABLESPACE', 'spaced');
	is($postgres->psql('select string_agg(id::text, \' \' order by id) from shop.spaced'), '8 9', 'D19: the rows that came with the file');
}

# ---- lenient: rows that go stay here
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"schema_changes": "lenient"}')});
settle();
$source->sql("create table shop.kept (id int primary key, v int) $partitions", 'insert into shop.kept values (1, 1), (11, 11)', 'alter table shop.kept drop partition p1', 'insert into shop.kept values (12, 12)');
settle();
$source->sql('insert into shop.kept values (13, 13)', 'alter table shop.kept truncate partition p2', 'insert into shop.kept values (14, 14)');
settle();
is($postgres->psql(q{select string_agg(id::text, ' ' order by id) from shop.kept where id > 11}), '12 13 14', 'lenient: rows of a partition that is emptied stay');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
