# Two pipelines from two servers, a MariaDB and a MySQL where both can be had, into one target: the example of docs/merging.md, then load, kills, and columns that come.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(slurp);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $eu = CdcBridge::Source->new;
my $us = eval { CdcBridge::Source->new(server => $eu->is_mysql ? 'mariadb' : 'mysql') } // CdcBridge::Source->new;
diag($eu->flavor . ' and ' . $us->flavor);
my %source = (eu => $eu, us => $us);
my $postgres = CdcBridge::Postgres->new;
my %pipeline = map { $_ => CdcBridge::Pipeline->new(source => $source{$_}, postgres => $postgres, name => "shop_$_", server => $_)->setup } qw(eu us);
sub settle { $_->wait_for_state('streaming', 120)->wait_for_catchup(120)->wait_for_tables->wait_for_catchup(120) for values %pipeline; return; }

my $columns = '(id int primary key, name varchar(20) not null)';
$eu->sql('create database shop_1', 'create database shop_2', map { "create table shop_$_.orders $columns" } 1, 2);
$us->sql('create database shop_1', "create table shop_1.orders $columns");
$eu->sql(q{insert into shop_1.orders values (1, 'one')}, q{insert into shop_2.orders values (1, 'eins')});
$us->sql(q{insert into shop_1.orders values (1, 'uno')});

# ---- the example
my $docs = slurp('docs/merging.md');
my ($sql) = $docs =~ /^```sql\n(.*?)^```/ms or die 'docs/merging.md has no example';
my ($result) = $docs =~ /^```text\n(.*?)\n```/ms or die 'docs/merging.md has no result';
$postgres->psql($sql);
settle();
is("server|shard|id|name\n" . $postgres->psql('select server, shard, id, name from shop.orders order by server, shard, id'), $result, 'R1: the example of docs/merging.md');

# ---- load from both sides, with the same keys
my $change = sub {
	my ($dbh, $number) = @_;
	my $id = 1 + int(rand(300));
	$dbh->do('begin');
	for (1 .. 1 + int(rand(4)))
	{
		my $what = int(rand(4));
		$dbh->do("replace into shop_1.orders (id, name) values ($id, 'v" . int(rand(1e6)) . "')") if $what < 2;
		$dbh->do("delete from shop_1.orders where id = $id") if $what == 2;
		$dbh->do("update ignore shop_1.orders set id = id + 1 where id = $id") if $what == 3;
		$id = 1 + int(rand(300));
	}
	$dbh->do('commit');
	select(undef, undef, undef, 0.002);
};
$_->start_writers(2, $change) for $eu, $us;
for my $round (1 .. 3)
{
	$postgres->poll(q{select bool_and(changes > 50) from pg_stat_cdc_pipeline}, 't', 60) or die "nothing comes\n";
	$eu->sql("alter table shop_1.orders add column n$round int", "update shop_1.orders set n$round = id") if $round < 3;
	$us->sql("alter table shop_1.orders add column n$round bigint not null default $round") if $round < 3;
	$postgres->kill9;
	$postgres->start;
}
$_->stop_writers for $eu, $us;
settle();
for my $name (sort keys %source)
{
	for my $schema ($name eq 'eu' ? qw(shop_1 shop_2) : 'shop_1')
	{
		my @columns = ('id', 'name', $schema eq 'shop_1' ? ('n1', 'n2') : ());
		my $theirs = join("\n", map { join('|', map { $_ // '' } @$_) } $source{$name}->query_rows('select ' . join(', ', @columns) . " from $schema.orders order by id"));
		my $ours = $postgres->psql('select ' . join(', ', @columns) . " from shop.orders where server = '$name' and shard = '$schema' order by id");
		is($ours, $theirs, "after kills $name has its own rows of $schema and no others") or diag($pipeline{$name}->describe);
	}
}
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state <> 'streaming'}), '0', 'no table stopped');
is($postgres->psql(q{select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'shop.orders'::regclass and attname = 'n1'}), 'bigint', 'R3: the column is wide enough for both');

$_->stop for values %pipeline;
done_testing();
