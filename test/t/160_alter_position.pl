# A running pipeline takes an altered definition up by itself and loses nothing; its position can be set forwards and backwards; its
# counters can be set to zero; with cdc_bridge.autostart off it waits after a start of the server.

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.t (id int primary key, v int)', 'insert into shop.t values (1, 1), (2, 2)');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
my $next = 100;
my $insert = sub { $source->sql(map { $next++; "insert into shop.t values ($next, $next)" } 1 .. ($_[0] // 1)); };
my $pid = sub { return $pipeline->status('ingest_pid'); };
my $new_worker = sub {
	my ($old, $name) = @_;
	ok($postgres->poll("select ingest_pid is not null and ingest_pid <> $old from pg_stat_cdc_pipeline where pipeline = 'shop_in'", 't', 60), $name);
};

# ---- alter

my $old = $pid->();
$insert->(20);
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"batch_max_ms": 0}')});
$insert->(20);
$new_worker->($old, 'after an option was changed another worker runs');
$insert->(20);
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('nothing is lost by a changed option');
my $commits = $pipeline->status('commits');
$insert->(5);
$pipeline->wait_for_catchup;
cmp_ok($pipeline->status('commits') - $commits, '>=', 5, 'the option counts: each source transaction is committed by itself');
is($pipeline->status('transactions_skipped'), '0', 'nothing was skipped');

$old = $pid->();
$postgres->psql(q{begin; select cdc_alter_pipeline('shop_in', options => '{"batch_max_ms": 10}'); rollback});
$insert->();
$pipeline->wait_for_catchup;
is($pid->(), $old, 'a change that is rolled back leaves the worker alone');

# the owner: the new worker runs as him, and may write what he may
my $port = $source->port;
$postgres->psql(<<'SQL');
create role ann login;
grant usage on foreign server shop to ann;
create user mapping for ann server shop options (username 'repl', password 'repl-secret');
grant usage on schema shop to ann;
grant select, insert, update, delete on all tables in schema shop to ann;
SQL
$postgres->psql("begin; select cdc_alter_pipeline('shop_in', owner => 'ann'); rollback");
like($postgres->{messages}, qr/WARNING:.*role "ann" cannot write 1 target table of pipeline "shop_in".*cannot SET ROLE.*ALTER TABLE shop\.t OWNER TO ann/s, 'a new owner who may not write a target is warned of');
$postgres->psql("revoke all on shop.t from ann; begin; select cdc_alter_pipeline('shop_in', owner => 'ann'); rollback");
like($postgres->{messages}, qr/ALTER TABLE shop\.t OWNER TO ann/, 'with the step that is needed in the end');
$postgres->psql("grant select, insert, update, delete on shop.t to ann; grant postgres to ann");
$postgres->psql("select cdc_alter_pipeline('shop_in', owner => 'ann')");
unlike($postgres->{messages}, qr/WARNING/, 'one who may is not');
$new_worker->($old, 'after the owner was changed another worker runs');
$pipeline->wait_for_state('streaming');
$insert->();
$pipeline->wait_for_catchup;
is($postgres->psql("select usename from pg_stat_activity where backend_type = 'cdc_bridge ingest worker'"), 'ann', 'as the new owner');
$pipeline->is_same('who loses nothing');

# the owner's role is dropped: no table is to blame
$postgres->psql('drop owned by ann; drop role ann');
$insert->();
$pipeline->wait_for_status('last_error', qr/^the owner of (the )?pipeline.* does not exist any more/);
is($pipeline->state, 'retrying', 'without its owner the pipeline waits for another one');
is($pipeline->table_status('t', 'state'), 'streaming', 'and no table is stopped');
is($postgres->psql(q{select "check" from cdc_check_pipeline('shop_in') where status = 'error'}), 'role', 'the check says the same, and asks nothing as a role that is gone');
$postgres->psql("select cdc_alter_pipeline('shop_in', owner => 'postgres')");
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('with another owner it goes on');

# another SERVER that leads to the same machine is the same source
$old = $pid->();
$postgres->psql(<<"SQL");
create server shop_again foreign data wrapper cdc_mysql options (host '127.0.0.1', port '$port');
create user mapping for postgres server shop_again options (username 'repl', password 'repl-secret');
select cdc_alter_pipeline('shop_in', source => 'shop_again');
SQL
$insert->();
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('another SERVER with the same machine behind it is the same source');
is($pipeline->status('source'), 'shop_again', 'the view tells it');

# another machine is not
my $stranger = CdcBridge::Source->new;
$stranger->sql('create database shop', 'create table shop.t (id int primary key, v int)');
my $strange_port = $stranger->port;
$postgres->psql(<<"SQL");
create server stranger foreign data wrapper cdc_mysql options (host '127.0.0.1', port '$strange_port');
create user mapping for postgres server stranger options (username 'repl', password 'repl-secret');
select cdc_alter_pipeline('shop_in', source => 'stranger');
SQL
if ($source->is_mysql)
{
	$pipeline->wait_for_state('failed');
	is($pipeline->status('last_error_sqlstate'), 'YC002', 'another server is refused');
}
else
{
	# identities of MariaDB are server_id and domain; the test's servers may share both, then the log tells
	ok(eval { $pipeline->wait_for_state('failed'); 1 }, 'another server is refused') or diag($@);
}
$postgres->psql("select cdc_alter_pipeline('shop_in', source => 'shop'); select cdc_start_pipeline('shop_in')");
$insert->();
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('back at the former server it goes on');
$stranger->stop;

# ---- counters

cmp_ok($pipeline->status('changes'), '>', 0, 'there are counters');
is($pipeline->status('stats_reset'), '', 'which nobody has set to zero');
$postgres->psql("select cdc_reset_stats('shop_in')");
is($pipeline->status('changes'), '0', 'then they are zero');
is($pipeline->table_status('t', 'inserts'), '0', 'those of the table too');
isnt($pipeline->status('stats_reset'), '', 'and the view tells when');
$insert->(3);
$pipeline->wait_for_catchup;
ok($postgres->poll("select changes from pg_stat_cdc_pipeline", '3', 30), 'they count on');
is($pipeline->table_status('t', 'inserts'), '3', 'those of the table too');

# ---- position

my ($file_a, $offset_a) = $source->binlog_position;
$source->sql('update shop.t set v = v + 1 where id = 1', 'insert into shop.t values (50, 50)', 'delete from shop.t where id = 2');
$pipeline->wait_for_catchup;
$pipeline->stop;
is($postgres->psql("select count(*) from shop.t where id = 2"), '0', 'a row is gone');

# backwards: everything comes once more
$postgres->psql("select cdc_set_position('shop_in', at => '$file_a:$offset_a')");
like($postgres->{messages}, qr/applied again/, 'a notice says what going back means');
is($postgres->psql('select file || $$:$$ || "offset" from cdc_bridge.position'), "$file_a:$offset_a", 'the position is the one that was set');
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('going back changes nothing that counts');
cmp_ok($pipeline->table_status('t', 'conflicts'), '>', 0, 'and is counted as conflicts');

# forwards: what lies between is missing
$pipeline->stop;
$source->sql('insert into shop.t values (60, 60)');
my ($file_b, $offset_b) = $source->binlog_position;
$source->sql('insert into shop.t values (61, 61)');
$postgres->psql("select cdc_set_position('shop_in', at => '$file_b:$offset_b')");
like($postgres->{messages}, qr/not applied/, 'a notice says what going forward means');
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
is($postgres->psql('select string_agg(id::text, $$,$$) from shop.t where id in (60, 61)'), '61', 'what lies between is left out, what follows is there');
like($postgres->log_text, qr/position of pipeline "shop_in" is set to \Q$file_b:$offset_b\E by role "postgres"/, 'the log tells who set it');
$source->sql('update shop.t set v = 0 where id = 60');
$pipeline->wait_for_catchup;
$pipeline->is_same('an update brings the row that was left out');

my $executed = sub { return $source->query_value($source->is_mysql ? 'select @@gtid_executed' : 'select @@gtid_binlog_pos') =~ s/\s//gr; };
is($pipeline->status('applied_gtids'), $executed->(), 'the set of GTIDs is that of the position, although only file and offset were given');

# by GTIDs
$pipeline->stop;
my $gtids = $source->is_mysql ? $source->query_value('select @@gtid_executed') : $source->query_value('select @@gtid_binlog_pos');
$source->sql('insert into shop.t values (70, 70)');
$postgres->psql("select cdc_set_position('shop_in', gtids => '$gtids')");
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('a set of GTIDs is a position too');

# all in one transaction; and one that is rolled back
my ($file_c, $offset_c) = $source->binlog_position;
$source->sql('update shop.t set v = v + 1 where id = 70');
$pipeline->wait_for_catchup;
$postgres->psql("set statement_timeout = '60s'; begin; select cdc_stop_pipeline('shop_in'); select cdc_set_position('shop_in', at => '$file_b:$offset_b'); rollback");
$pipeline->wait_for_status('ingest_pid', qr/\d/);
$postgres->psql("set statement_timeout = '60s'; begin; select cdc_stop_pipeline('shop_in'); select cdc_set_position('shop_in', at => '$file_c:$offset_c'); select cdc_start_pipeline('shop_in'); commit");
$source->sql('insert into shop.t values (75, 75)');
$pipeline->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('stopped, set and started in one transaction');

# one that the source does not have
$pipeline->stop;
$postgres->psql("select cdc_set_position('shop_in', at => 'nosuch.000001:4')");
$pipeline->start->wait_for_state('failed');
is($pipeline->status('last_error_sqlstate'), 'YC001', 'a position that the source does not have is refused');
like($pipeline->status('last_error_hint'), qr/^If the position was set with cdc_set_position\(\), set another one/, 'and the hint does not begin with dropping tables');
like($postgres->psql_error("select cdc_set_position('shop_in', at => '$file_b:$offset_b')"), qr/is not stopped/, 'a failed pipeline has to be stopped first');
$pipeline->stop;
$postgres->psql("select cdc_set_position('shop_in', at => '$file_b:$offset_b')");
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('and set right it goes on');

# one inside a transaction: half of it would be applied. Each event of the group is tried that a server can be asked to begin with.
$pipeline->stop;
my ($file_d, $offset_d) = $source->binlog_position;
$source->sql('start transaction', 'update shop.t set v = v + 1 where id = 60', 'insert into shop.t values (76, 76), (77, 77)', 'commit');
my @inside = grep { $_->[1] > $offset_d } $source->query_rows("show binlog events in '$file_d' from $offset_d limit 20");
my ($table_map) = grep { $_->[2] =~ /^table_map/i } @inside;
my ($commit) = grep { $_->[2] =~ /^xid/i } @inside;
for my $event ($table_map, $inside[0], $commit)
{
	$postgres->psql("select cdc_set_position('shop_in', at => '$file_d:$event->[1]')");
	$pipeline->start->wait_for_state('failed');
	is($pipeline->status('last_error_sqlstate'), 'YC002', "a position at an event $event->[2] inside a transaction is refused");
	like($pipeline->status('last_error'), qr/position \Q$file_d:$event->[1]\E is inside a transaction of source server/, 'which is said');
	like($pipeline->status('last_error_hint'), qr/set with cdc_set_position\(\), set it to where a transaction begins/, 'and what to do');
	is($postgres->psql('select count(*) from shop.t where id in (76, 77)'), '0', 'no part of it is applied');
	is($postgres->psql('select file || $$:$$ || "offset" from cdc_bridge.position'), "$file_d:$event->[1]", 'the position stays');
	$pipeline->stop;
}
$postgres->psql("select cdc_set_position('shop_in', at => '$file_d:$offset_d')");
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('from its beginning it is applied');

# ---- autostart

$postgres->append_conf('cdc_bridge.autostart = off');
$postgres->restart;
is($pipeline->state, 'waiting', 'with autostart off the pipeline waits after a start of the server');
like($postgres->psql_error("call cdc_wait_for_pipeline('shop_in')"), qr/waiting to be started.*autostart/s, 'and who waits for it is told');
$pipeline->start->wait_for_state('streaming');
$source->sql('insert into shop.t values (80, 80)');
$pipeline->wait_for_catchup;
$pipeline->is_same('until it is started');
$old = $pid->();
$postgres->psql("select pg_terminate_backend($old)");
$new_worker->($old, 'from then on its workers come back by themselves');
$postgres->restart;
is($pipeline->state, 'waiting', 'after the next start it waits again');
$postgres->append_conf('cdc_bridge.autostart = on');
$postgres->psql('select pg_reload_conf()');
$pipeline->wait_for_state('streaming');
pass('switched on, it starts at once');

# ---- a pipeline that was stopped, beside one that was not

$source->sql('create database beside', 'create table beside.b (id int primary key)');
$postgres->psql(q{select cdc_start_pipeline('beside', source => 'shop', tables => '{beside.*}', target_schema => 'beside')});
ok($postgres->poll(q{select state from pg_stat_cdc_pipeline where pipeline = 'beside'}, 'streaming'), 'a second pipeline runs');
$pipeline->stop;
for my $how ('a restart', 'kill -9')
{
	$source->sql('insert into shop.t select 1 + max(id), 1 from shop.t');
	$how eq 'kill -9' ? $postgres->kill9->start : $postgres->restart;
	ok($postgres->poll(q{select state || (ingest_pid is not null)::text from pg_stat_cdc_pipeline where pipeline = 'beside'}, 'streamingtrue'), "B36: after $how what ran comes back");
	is($pipeline->status(q{state || (ingest_pid is null)::text || snapshot_workers}), 'stoppedtrue0', "B36: after $how what was stopped stays stopped");
	ok(!$pipeline->same_rows('t'), "B36: after $how nothing is applied");
}
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('B36: until it is started');

done_testing();
