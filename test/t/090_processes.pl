# Workers are good citizens: pg_terminate_backend stops any of them within a second, whatever it waits in, and it comes back; a
# database can be dropped, renamed and copied while pipelines run in it; roles see what is theirs; nothing is left over.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use IO::Handle;
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(time);

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.t (id int primary key, v int)', 'insert into shop.t values (1, 1), (2, 2)');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;

# pg_terminate_backend
for my $kind ('manager', 'ingest')
{
	my $pid = $postgres->psql("select pid from pg_stat_activity where backend_type like 'cdc_bridge%$kind%'");
	like($pid, qr/^\d+$/, "there is one $kind process") or next;
	my $start = time();
	$postgres->psql("select pg_terminate_backend($pid)");
	ok($postgres->poll("select count(*) from pg_stat_activity where pid = $pid", '0', 5), "the $kind process ends");
	cmp_ok(time() - $start, '<', 1.5, "the $kind process ends within a second (and a psql)");
	ok($postgres->poll("select count(*) from pg_stat_activity where backend_type like 'cdc_bridge%$kind%'", '1', 60), "the $kind process comes back");
}
$source->sql('insert into shop.t values (3, 3)');
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('it streams again');
is($postgres->psql("select string_agg(backend_type, ',' order by backend_type) from pg_stat_activity where backend_type like 'cdc_bridge%'"),
	'cdc_bridge ingest worker,cdc_bridge launcher,cdc_bridge manager', 'each kind of process has a backend_type of its own');
is($postgres->psql("select application_name from pg_stat_activity where backend_type = 'cdc_bridge ingest worker'"),
	"cdc_bridge $pipeline->{name}", 'a worker names its pipeline');

# stopped and started in one transaction: the worker never leaves, and the state says that it streams
$postgres->psql("begin; select cdc_stop_pipeline('$pipeline->{name}'); select cdc_start_pipeline('$pipeline->{name}'); commit");
ok(eval { $pipeline->wait_for_state('streaming', 30); 1 }, 'stopped and started in one transaction it streams') or diag($@);

# while somebody's transaction that drops a pipeline is open: the views answer, its worker is kept out, and a rollback brings it back
{
	open(my $session, '|-', $postgres->bindir . '/psql', '-qXAt', '-o', '/dev/null', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', '-d', 'postgres')
	  or die "psql: $!";
	$session->autoflush(1);
	print $session "begin; select cdc_drop_pipeline('$pipeline->{name}');\n";
	ok($postgres->poll("select count(*) from pg_stat_activity where state = 'idle in transaction' and query like '%cdc_drop_pipeline%'", '1', 60), 'a session holds a drop open');
	is($postgres->psql("set statement_timeout = '20s'; select count(*) from pg_stat_cdc_pipeline"), '1', 'the view answers while a drop is open');
	is($postgres->psql("select count(*) from pg_stat_activity where backend_type = 'cdc_bridge ingest worker'"), '0', 'the worker is kept out');
	close($session);    # psql ends, and its transaction with it
	$source->sql('insert into shop.t values (4, 4)');
	$pipeline->wait_for_catchup;
	$pipeline->is_same('a drop that is rolled back changes nothing');
}

# a worker that waits for a server which takes the connection and says nothing
{
	my $silent = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 5) or die "listen: $!";
	my $mute = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => 'mute', server => 'mute', target_schema => 'mute',
		server_options => { port => $silent->sockport })->setup;
	$mute->start;
	my $pid;
	poll_until(sub { $pid = $mute->status('ingest_pid'); return $pid =~ /\d/; }, 30);
	like($pid, qr/^\d+$/, 'a worker waits for a mute server');
	my $start = time();
	$postgres->psql("select pg_terminate_backend($pid)");
	ok($postgres->poll("select count(*) from pg_stat_activity where pid = $pid", '0', 5), 'it can be ended');
	cmp_ok(time() - $start, '<', 1.5, 'within a second');
	$start = time();
	$postgres->psql("select cdc_stop_pipeline('mute')");
	$mute->wait_for_state('stopped', 10);
	cmp_ok(time() - $start, '<', 3, 'a stop does not wait for the mute server');
	$mute->drop;
}

# a second database: its own manager and pipeline
$postgres->psql('create database other');
{
	local $postgres->{database} = 'other';
	my $other = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
	$other->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	$other->is_same('a second database mirrors the same source');
}
is($postgres->psql("select count(distinct datname) from pg_stat_activity where backend_type like 'cdc_bridge%ingest%'"), '2', 'two databases, two workers');
$postgres->psql('alter database other rename to renamed');
ok($postgres->poll("select count(*) from pg_stat_activity where backend_type like 'cdc_bridge%ingest%' and datname = 'renamed'", '1', 60), 'after ALTER DATABASE ... RENAME it goes on');
$postgres->psql('create database copied template renamed');
{
	local $postgres->{database} = 'copied';
	is($postgres->psql('select string_agg(state, $$,$$) from pg_stat_cdc_pipeline'), 'stopped', 'in a copied database the pipeline is stopped');
}
$postgres->psql('drop database copied');
$postgres->psql('drop database renamed');
is($postgres->psql("select count(*) from pg_database where datname in ('renamed', 'copied')"), '0', 'DROP DATABASE works while a pipeline runs');
is($postgres->psql("select count(*) from pg_replication_origin where roname like 'cdc%'"), $postgres->psql("select count(*) from pg_replication_origin o where roname like 'cdc\\_' || (select oid from pg_database where datname = 'postgres') || '%'"),
	'origins of the dropped database are gone');

# roles
$postgres->psql(<<'SQL');
create role ann login; create role bob login; create role watcher login; grant pg_monitor to watcher;
grant usage on foreign data wrapper cdc_mysql to ann; grant create on database postgres to ann;
grant execute on all functions in schema public to ann;
SQL
my $port = $source->port;
$postgres->psql(<<"SQL", user => 'ann');
create server ann_shop foreign data wrapper cdc_mysql options (host '127.0.0.1', port '$port');
create user mapping for current_user server ann_shop options (username 'repl', password 'repl-secret');
create schema ann_target;
select cdc_start_pipeline('ann_in', source => 'ann_shop', tables => '{shop.*}', target_schema => 'ann_target');
SQL
my $ann = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => 'ann_in', target_schema => 'ann_target');
$ann->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$ann->is_same('a role without superuser rights mirrors');
is($postgres->psql("select distinct tableowner from pg_tables where schemaname = 'ann_target'"), 'ann', 'its tables belong to it');
is($postgres->psql("select distinct usename from pg_stat_activity where pid = (select ingest_pid from pg_stat_cdc_pipeline where pipeline = 'ann_in')"), 'ann', 'its worker runs as it');
is($postgres->psql('select pipeline from pg_stat_cdc_pipeline', user => 'ann'), 'ann_in', 'a role sees its own pipeline only');
is($postgres->psql('select pipeline from pg_stat_cdc_pipeline', user => 'bob'), '', 'another role sees nothing');
is($postgres->psql("select string_agg(pipeline, ',' order by pipeline) from pg_stat_cdc_pipeline", user => 'watcher'), 'ann_in,shop_in', 'pg_monitor sees all');
like($postgres->psql_error("select cdc_stop_pipeline('shop_in')", user => 'ann'), qr/ERROR:  42501|must be owner|does not exist/, 'a role cannot stop what is not its own');
like($postgres->psql_error("select cdc_start_pipeline('bobs', source => 'shop', tables => '{shop.*}')", user => 'bob'), qr/permission denied/, 'starting pipelines is not for everyone');
like($postgres->psql_error("select * from cdc_check('shop')", user => 'bob'), qr/permission denied/, 'nor are checks of other machines');
$postgres->psql("select cdc_stop_pipeline('ann_in')", user => 'ann');
$ann->wait_for_state('stopped');

# the extension goes while a pipeline runs
$postgres->psql('drop extension cdc_bridge cascade');
ok($postgres->poll("select count(*) from pg_stat_activity where backend_type like 'cdc_bridge%' and backend_type not like '%launcher%'", '0', 30), 'after DROP EXTENSION no worker is left');
is($postgres->psql("select count(*) from pg_replication_origin where roname like 'cdc%'"), '0', 'and no origin');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):|server process .* was terminated by signal/, 'nothing crashed');

done_testing();
