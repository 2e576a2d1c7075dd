# What a session must not take over from the server's defaults, a server that stops answering, and a user who may read some
# columns only.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $source = CdcBridge::Source->new;
$source->sql('create database shop', 'create table shop.t (id int primary key, v varchar(20))',
	'insert into shop.t values ' . join(', ', map { "($_, 'v$_')" } 1 .. 500),
	'create table shop.u (id varchar(50) primary key, v int)',
	'insert into shop.u values ' . join(', ', map { "('a common start of the key $_', $_)" } 1 .. 500));

$source->sql('create table shop.h (id int primary key, v int) with system versioning', 'insert into shop.h values (1, 1), (2, 2)') if $source->is_mariadb;

# 1. Defaults that change answers, and a transaction that is open while tables are copied and then rolled back.
$source->sql('set global system_versioning_asof = "2001-01-01 00:00:00"') if $source->is_mariadb;
$source->sql("set global sql_select_limit = 2, global max_join_size = 3, global completion_type = 'CHAIN', global max_sort_length = 8,
	global sql_auto_is_null = 1, global sql_quote_show_create = 0, global sql_mode = 'ANSI,PAD_CHAR_TO_FULL_LENGTH', global time_zone = '+05:00'",
	'set global transaction isolation level read uncommitted', q{set global init_connect = 'set autocommit = 0, sql_select_limit = 1'});
$source->sql($source->is_mysql ? 'set global max_execution_time = 1' : 'set global max_statement_time = 0.5');
my $writer = $source->connect;
$writer->do("set sql_select_limit = default");
$writer->begin_work;
$writer->do('insert into shop.t values (1000, \'dirty\')');
$writer->do('update shop.t set v = \'dirty\' where id = 7');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres);
$pipeline->setup->start->wait_for_state('streaming')->wait_for_tables(60);
is($postgres->psql('select count(*) from shop.t'), '500', 'all rows came');
is($postgres->psql(q{select count(*) from shop.t where v = 'dirty'}), '0', 'and none that is not committed');
is($postgres->psql('select count(*) from shop.u'), '500', 'all rows of a table with long keys');
is($postgres->psql('select count(*) from shop.h'), '2', 'all rows of a table with versions') if $source->is_mariadb;
$source->sql('set global system_versioning_asof = default') if $source->is_mariadb;
$writer->rollback;
$writer->disconnect;
$source->sql('set global sql_select_limit = default, global max_join_size = default, global completion_type = default, global max_sort_length = default,
	global sql_auto_is_null = default, global sql_quote_show_create = default, global sql_mode = default, global time_zone = default',
	'set global transaction isolation level repeatable read', q{set global init_connect = ''});
$source->sql($source->is_mysql ? 'set global max_execution_time = default' : 'set global max_statement_time = default');
delete $source->{dbh};
$source->sql("insert into shop.t values (2000, 'after')");
$pipeline->wait_for_catchup;
$pipeline->is_same('both sides are equal');

# serializable: a read would wait for the lock of a writer
$pipeline->stop->drop;
$pipeline->drop_target;
$source->sql('set global transaction isolation level serializable');
$writer = $source->connect;
$writer->begin_work;
$writer->do(q{update shop.t set v = 'locked' where id = 7});
$pipeline->start->wait_for_state('streaming')->wait_for_tables(40);
pass('no lock was asked for');
$writer->rollback;
$writer->disconnect;
$source->sql('set global transaction isolation level repeatable read');
$pipeline->wait_for_catchup->is_same('equal again');
$pipeline->stop->drop;
$pipeline->drop_target;

# 2. A server that stops answering.
$postgres->psql("alter server shop options (add query_timeout '2', add connect_timeout '2')");
sub stalled
{
	my ($code) = @_;
	kill('STOP', $source->pid);
	my $started = time();
	my $result = eval { $code->(); };
	my $error = $@;
	my $took = time() - $started;
	kill('CONT', $source->pid);
	die $error if $error;
	return ($result, $took);
}

# in the middle of a query: it waits for a lock when the server is stopped
$source->sql('create table shop.m (id int primary key, v int)', 'insert into shop.m values (1, 1)');
my $locker = $source->connect;
$pipeline->{tables} = '{shop.m}';
$locker->do('lock tables shop.m write');
$postgres->psql($pipeline->start_statement);
$pipeline->{created} = 1;
ok(poll_until(sub { return $source->query_value(q{select count(*) from information_schema.processlist where state like '%metadata lock%'}); }, 40),
	'a query waits');
kill('STOP', $source->pid);
my $told = eval { $pipeline->wait_for_status('last_error_detail', qr/has not answered for 2 s/, 40); };
kill('CONT', $source->pid);
ok($told, 'a server that does not answer is noticed') or diag($pipeline->describe);
like($pipeline->state, qr/retrying|starting/, 'the pipeline tries again');
$pipeline->wait_for_status('last_error_sqlstate', qr/^08006$/, 40);
like($pipeline->status('last_error_hint'), qr/ALTER SERVER shop OPTIONS \(query_timeout/, 'the hint names the option');

# a check does not wait for the lock of a table, and ends when the server is stopped
like($postgres->psql(q{select "check" || ' ' || status from cdc_check('shop') order by "check" = 'engine' desc limit 1}), qr/^engine ok/,
	'a check passes a locked table over');
kill('STOP', $source->pid);
my $began = time();
my $line = eval { $postgres->psql(q{select status || ' ' || detail from cdc_check('shop') where "check" = 'connection'}); };
my $took = time() - $began;
kill('CONT', $source->pid);
like($line, qr/^error /, 'a check of a stopped server says so');
ok($took < 20, "and ends ($took s)");

$locker->do('unlock tables');
$locker->disconnect;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_same('it comes back', 'm');
$pipeline->stop->drop;

# 3. Some columns only.
$postgres->psql("alter server shop options (drop query_timeout)");
$source->create_user('part', 'part-secret', 'replication slave, replication client');
$source->sql('create database part', 'create table part.`w x` (id int primary key, a int, b int)', 'insert into part.`w x` values (1, 1, 1)',
	q{grant select (id, a) on part.`w x` to 'part'@'%'});
$postgres->psql(q{alter user mapping for current_user server shop options (set username 'part', set password 'part-secret')});
like($postgres->psql(q{select detail || ' ' || hint from cdc_check('shop') where hint like 'GRANT SELECT ON `part`%'}),
	qr/"part\.w x".*GRANT SELECT ON `part`\.`w x` TO 'part'\@'%';/, 'the check prints the GRANT');
my $part = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => 'part_in', schema => 'part');
$postgres->psql($part->start_statement);
$part->{created} = 1;
$part->wait_for_status('last_error', qr/does not let the user read table "part\.w x"/, 40);
is($part->status('last_error_sqlstate'), 'YC003', 'a table of which the user may read some columns: YC003');
my ($grant) = $part->status('last_error_hint') =~ /Run on the source: (GRANT .*);/;
is($grant, q{GRANT SELECT ON `part`.`w x` TO 'part'@'%'}, 'the hint is a statement');
$source->sql($grant);
$part->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$part->is_same('with it all columns come');

done_testing();
