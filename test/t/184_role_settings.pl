# Workers are the pipeline's owner, whatever the role's settings make of a session of his: ALTER ROLE ... SET role does not make them another
# one, and no timeout of the role or the database ends what takes long.
#
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.t (id int primary key, v varchar(50), key (v))', "insert into shop.t values (1, 'a'), (2, 'b')",
	'create table shop.large (id int primary key auto_increment, v varchar(50))', "insert into shop.large (v) values ('x')");
$source->sql('insert into shop.large (v) select v from shop.large') for 1 .. 16;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup;
my $has_transaction_timeout = $postgres->major >= 17;
$postgres->psql(join(";\n", 'create role app login', 'create role everybody nologin', 'grant everybody to app', 'create schema shop authorization app',
	'grant usage on foreign server shop to app', 'create user mapping for app server shop options (username ' . CdcBridge::Pipeline::quote($source->user) . ', password ' . CdcBridge::Pipeline::quote($source->password) . ')',
	'grant execute on function cdc_start_pipeline to app', 'alter role app set role = everybody',
	"alter role app set statement_timeout = '10ms'", "alter database postgres set lock_timeout = '10ms'",
	$has_transaction_timeout ? "alter role app set transaction_timeout = '100ms'" : ()));
$postgres->psql("set role none; set statement_timeout = 0; " . ($has_transaction_timeout ? 'set transaction_timeout = 0; ' : '') . $pipeline->start_statement, user => 'app');
$pipeline->{created}++;
$pipeline->wait_for_state('streaming')->wait_for_tables;
is($postgres->psql(q{select string_agg(source_table || ':' || state, ' ' order by source_table) from pg_stat_cdc_table}), 'large:streaming t:streaming', 'tables stream')
  or diag($pipeline->describe);
is($postgres->psql(q{select string_agg(distinct tableowner, ' ') from pg_tables where schemaname = 'shop'}), 'app', 'they belong to the owner of the pipeline');
ok($postgres->poll(q{select string_agg(state, ' ') from pg_stat_cdc_index}, 'built', 60), 'indexes are built as the owner') or diag($pipeline->describe);

# a source transaction that takes longer than any of the limits
$source->sql(q{update shop.large set v = concat(v, 'y')});
$pipeline->wait_for_catchup;
is($pipeline->status('last_error'), '', 'a large transaction runs into no timeout') or diag($pipeline->describe);

# a lock that lasts longer
open(my $locker, '|-', "$postgres->{bindir}/psql", '-XAtq', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', '-d', 'postgres') or die "psql: $!";
$locker->autoflush(1);
print $locker "begin; set local lock_timeout = 0; lock table shop.t in access exclusive mode;\n";
ok($postgres->poll(q{select count(*) from pg_locks where relation = 'shop.t'::regclass and mode = 'AccessExclusiveLock' and granted}, '1', 30), 'a target is locked');
$source->sql(q{insert into shop.t values (3, 'c')});
ok($postgres->poll(q{select count(*) from pg_locks l join pg_stat_activity a using (pid) where backend_type = 'cdc_bridge ingest worker' and not granted and waitstart < now() - interval '1 second'}, '1', 60),
	'the stream waits for the lock') or diag($pipeline->describe);
print $locker "commit;\n\\q\n";
close($locker);
$pipeline->wait_for_catchup;
is($pipeline->status('last_error'), '', 'a lock runs into no timeout') or diag($pipeline->describe);
$pipeline->is_same('all has arrived');

done_testing();
