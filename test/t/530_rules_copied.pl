# Tables with transforms and target kinds whose source changes its shape while they are copied, for the first time and anew: they begin anew by
# themselves, as tables without a rule do.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my @tables = qw(marked history newest filtered computed plain);
$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, a int, b varchar(10))", "insert into shop.$_ values " . join(', ', map { "($_, $_, 'x')" } 1 .. 100)) } @tables);
$source->sql("grant lock tables on *.* to '" . $source->user . "'\@'%'");    # a history is copied under a lock
my $slow = '"snapshot_chunk_rows": 20, "max_rows_per_second": %d, "transforms": [{"tables": "shop.marked", "target": "soft_delete"}, {"tables": "shop.history", "target": "append"}, '
  . '{"tables": "shop.newest", "target": "last_writer", "version_column": "a"}, {"tables": "shop.filtered", "filter": "id > 0"}, {"tables": "shop.computed", "projection": "*, id + 1 AS w"}]';
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => sprintf("{$slow}", 100))->setup->start;

sub sums
{
	my ($columns) = @_;
	for my $table (@tables)
	{
		my $query = "select count(*), sum(id), sum(a), " . join(', ', map { "sum(coalesce($_, 0))" } @$columns) . " from shop.$table";
		my $where = $table eq 'marked' ? ' where not cdc_deleted' : '';
		is($postgres->psql($query . $where), join('|', map { @$_ } $source->query_rows($query)), "$table: the rows of the source") if $table ne 'history';
		is($pipeline->table_status($table, 'state'), 'streaming', "$table streams") or diag($pipeline->describe);
	}
	return;
}

$postgres->poll(q{select count(*) > 0 from pg_stat_cdc_snapshot where rows_copied > 0}, 't') or die "nothing is copied\n";
$source->sql(map { ("alter table shop.$_ add x int default 4", "insert into shop.$_ values (1000, 1, 'y', 1)", "alter table shop.$_ modify a bigint") } @tables);
$pipeline->wait_for_catchup->wait_for_tables->wait_for_state('streaming')->wait_for_catchup;
sums(['x']);

# copied anew, with names that change and change back
@tables = grep { $_ ne 'history' } @tables;    # the rows of a history cannot be copied anew beside them
$postgres->psql("select cdc_resync_table('shop_in', 'shop.$_')") for @tables;
$source->sql(map { ("alter table shop.$_ change b bb varchar(10), add y int default 7", "alter table shop.$_ change bb b varchar(10)", "insert into shop.$_ values (1001, 1, 'y', 1, 2)") } @tables);
$pipeline->wait_for_catchup->wait_for_tables->wait_for_state('streaming')->wait_for_catchup;
$postgres->poll(q{select count(*) from pg_class where relname like 'cdc\_resync%'}, '0') or die "the copies do not take their places\n";
sums([qw(x y)]);
is($postgres->psql('select count(*) filter (where w = id + 1) = count(*) from shop.computed'), 't', 'a computed column is there for all rows');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
