# Many shard tables on two servers into few targets, by two pipelines that start at the same moment. CDC_TEST_SHARDS says how many (40), CDC_TEST_MERGED into how many (4).
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(slurp);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;
use Time::HiRes qw(time);

my $targets = $ENV{CDC_TEST_MERGED} // 4;
my $schemas = int(($ENV{CDC_TEST_SHARDS} // 40) / 2 / $targets) || 1;    # of each server, each with a shard of every target
my $shards = 2 * $schemas * $targets;
my $seconds = 60 + $shards;
my @sources = map { CdcBridge::Source->new } 1 .. 2;
my $postgres = CdcBridge::Postgres->new;
my $options = '{"batch_max_ms": 0, "routes": [{"source": "shop_*.*", "schema": "shop", "table": "$2", "merge": true}],
  "transforms": [{"tables": "shop_*.*", "projection": "cdc_server AS server, cdc_schema AS shard, *", "key": ["server", "shard", "id"]}]}';
my @pipelines = map { CdcBridge::Pipeline->new(source => $sources[$_], postgres => $postgres, name => "in_$_", server => "server_$_", schema => 'shop', tables => '{shop_*.*}', options => $options)->setup } 0 .. 1;
my @names = map { my $schema = $_; map { "shop_$schema.t_$_" } 1 .. $targets } 1 .. $schemas;
my $begin = time;
sub settle { $_->wait_for_state('streaming', $seconds)->wait_for_catchup($seconds) for @pipelines; return; }
sub total { my ($what) = @_; return $postgres->psql('select sum(n) from (' . join(' union all ', map { "select $what as n from shop.t_$_" } 1 .. $targets) . ') as each'); }
sub lap { my ($what) = @_; diag(sprintf('%-40s %6.1f s, ingest workers have %s kB', $what, time - $begin, join(' and ', map { slurp('/proc/' . $_->status('ingest_pid') . '/status') =~ /^RssAnon:\s*(\d+)/m ? $1 : '?' } @pipelines))); $begin = time; return; }

# equal keys everywhere; types differ from shard to shard
my $number = 0;
for my $source (@sources)
{
	$source->sql((map { "create database shop_$_" } 1 .. $schemas),
		map { ("create table $_ (id " . (++$number % 2 ? 'int' : 'bigint') . ' primary key, v ' . ($number % 3 ? 'varchar(5)' : 'varchar(9)') . ')', "insert into $_ values (1, 'a'), (2, 'b')") } @names);
}
diag(sprintf('%d tables were made in %.1f s', $shards, time - $begin));
$begin = time;
$_->start for @pipelines;
settle();
$_->wait_for_tables($seconds) for @pipelines;
lap("$shards shards are copied into $targets tables");
is($postgres->psql(q{select count(*), count(distinct target_schema || '.' || target_table), bool_and(state = 'streaming') from pg_stat_cdc_table}), "$shards|$targets|t", 'all shards stream, into few targets') or diag($pipelines[0]->describe);
is(total('count(*)'), 2 * $shards, 'the targets have the rows of all');
is(total('count(distinct (server, shard))'), $shards, 'of each shard');
for my $source (@sources)
{
	$source->sql('begin', (map { ("insert into $_ values (3, 'c')", "update $_ set v = 'd' where id = 1", "delete from $_ where id = 2") } @names), 'commit');
}
settle();
lap('a change of each row');
is(total(q{count(*) filter (where (id, v) in ((1, 'd'), (3, 'c')))}), 2 * $shards, 'changes of every shard arrive');
is(total('count(*)'), 2 * $shards, 'and nothing else');

# every shard gets a column; one is emptied
for my $source (@sources) { $source->sql(map { ("alter table $_ add column n int", "update $_ set n = 7 where id = 1") } @names); }
$sources[0]->sql("truncate $names[0]");
settle();
lap('a column more in each shard');
is(total('sum(n)'), 7 * ($shards - 1), 'R4: a column that all shards get, one after the other');
is(total('count(*)'), 2 * $shards - 2, 'R5: a shard that was emptied, and no other');
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state <> 'streaming'}), '0', 'all shards stream') or diag($pipelines[1]->describe);

$_->stop for @pipelines;
done_testing();
