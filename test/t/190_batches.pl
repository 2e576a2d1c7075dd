# How the stream writes: changes collapsed to what they come to for each key, in an order that unique constraints bear, many rows
# at a time where the target allows it and row by row where it does not; and what becomes of changes that cannot be written.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Shop qw(change_hot create_hot);
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new(conf => "track_commit_timestamp = on\n");
my $seed = $ENV{CDC_SEED} // int(time());
diag("seed $seed");

# targets that a user made, with what the source does not have
$source->sql('create database shop',
	'create table shop.counted (id int primary key, v int)', 'insert into shop.counted values (1, 0)',
	'create table shop.hot_row (id int primary key, v int)', 'insert into shop.hot_row values (1, 0), (2, 0)',
	'create table shop.queue (id int primary key, place int, name varchar(20), unique (place))',
	'insert into shop.queue select seq, seq, concat(char(64 + seq), seq) from (' . join(' union all ', map { "select $_ seq" } 1 .. 20) . ') s',
	'create table shop.filled (id int primary key, v int)', 'insert into shop.filled values (1, 1), (2, 2)',
	'create table shop.audited (id int primary key, v int)', 'insert into shop.audited values (1, 0)',
	'create table shop.later (id int primary key, u int, unique (u))', 'insert into shop.later values (1, 1), (2, 2)',
	'create table shop.leaf (id int primary key, v int)', 'insert into shop.leaf values (1, 1)',
	'create table shop.met (id int primary key, v int)', 'insert into shop.met values (1, 1)');
$postgres->psql(join(";\n", 'set client_min_messages = warning', 'create schema shop',
	'create table shop.queue (id int primary key, place int unique, name text, exclude using btree (name with =))',
	'create table shop.filled (id int primary key, v int not null check (v >= 0), extra int default 7, twice int generated always as (v * 2) stored)',
	'create table shop.audited (id int primary key, v int)',
	'create table shop.audit (v int)',
	'create function shop.note() returns trigger language plpgsql as $$ begin insert into shop.audit values (new.v); return new; end $$',
	'create trigger note after insert or update on shop.audited for each row execute function shop.note()',
	'alter table shop.audited enable always trigger note',
	'create table shop.later (id int primary key, u int unique deferrable initially deferred)',
	'create table shop.leaves (id int primary key, v int) partition by range (id)',
	'create table shop.leaf partition of shop.leaves for values from (0) to (100)'));
# heartbeats come more often than the worker looks around
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { heartbeat_interval => 300 })->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables;

sub tuples { my ($table, $column) = @_; return $postgres->psql("select $column from pg_stat_user_tables where relid = 'shop.$table'::regclass"); }

# ---- collapsing: one write for a key, however often it changed, also where an old snapshot keeps every version
$source->sql('set autocommit = 0', (map { "update shop.hot_row set v = v + 1 where id = 1" } 1 .. 3000), 'commit',
	'insert into shop.hot_row values (3, 0)', 'commit', 'delete from shop.hot_row where id = 3', 'commit',
	'update shop.hot_row set id = 4 where id = 2', 'update shop.hot_row set id = 5 where id = 4', 'commit', 'set autocommit = 1');
$pipeline->wait_for_catchup;
$pipeline->is_same('a hot row', 'hot_row');
is($pipeline->table_status('hot_row', 'updates'), '3002', 'every change was counted');
is($pipeline->table_status('hot_row', "tier || ' ' || collapsed"), 'lean true', 'the view says how');
ok($postgres->poll("select n_tup_upd between 1 and 200 from pg_stat_user_tables where relid = 'shop.hot_row'::regclass", 't'), '3000 updates of a row are few here')
  or diag(tuples('hot_row', 'n_tup_upd'));

# the statistics system takes a report once a second: what a commit keeps back is told when nothing follows it either
for my $n (1 .. 3) { $source->sql("update shop.counted set v = $n"); $pipeline->wait_for_catchup; }
ok($postgres->poll("select n_tup_upd from pg_stat_user_tables where relid = 'shop.counted'::regclass", '3'), 'all writes are counted in the end')
  or diag($postgres->{last});

# ---- unique values that wander: up by one, a swap, a cycle over a free place, a value that a deleted row leaves
$source->sql('update shop.queue set place = place + 1 order by place desc');
$source->sql('start transaction', 'update shop.queue set place = -1 where id = 1', 'update shop.queue set place = 2 where id = 2',
	'update shop.queue set place = 3 where id = 1', 'commit');
$source->sql('start transaction', 'delete from shop.queue where id = 20', 'update shop.queue set place = 21 where id = 3',
	'insert into shop.queue values (21, 4, \'new\')', 'commit');
$source->sql('start transaction', (map { "update shop.queue set name = concat('x', $_) where id = $_" } 4 .. 19),
	(map { my $next = $_ == 19 ? 4 : $_ + 1; "update shop.queue set name = concat(char(64 + $next), $next) where id = $_" } 4 .. 19), 'commit');
$pipeline->wait_for_catchup;
is($pipeline->table_status('queue', 'state'), 'streaming', 'B35: wandering unique values do not stop the table') or diag($pipeline->table_status('queue', 'last_error'));
$pipeline->is_same('unique values have arrived', 'queue');
is($pipeline->table_status('queue', 'tier'), 'lean', 'in the lean tier');
unlike($postgres->log_text, qr/come again one by one/, 'no batch had to be taken apart');

# ---- what the target adds of its own
$postgres->psql('update shop.filled set extra = 99 where id = 1');
$source->sql('update shop.filled set v = 10 where id = 1', 'insert into shop.filled values (3, 3)');
$pipeline->wait_for_catchup;
is($postgres->psql('select * from shop.filled order by id'), "1|10|99|20\n2|2|7|4\n3|3|7|6", 'defaults, kept values, generated columns');
is($pipeline->table_status('filled', 'tier'), 'lean', 'in the lean tier');

# ---- row triggers see every change, in order; deferred constraints are checked at the end
$source->sql('start transaction', (map { "update shop.audited set v = $_ where id = 1" } 1 .. 50), 'commit',
	'start transaction', 'update shop.later set u = 3 where id = 1', 'update shop.later set u = 1 where id = 2', 'update shop.later set u = 2 where id = 1', 'commit');
$pipeline->wait_for_catchup;
is($postgres->psql("select string_agg(v::text, ' ') from shop.audit where v > 0"), join(' ', 1 .. 50), 'the trigger saw every change');
is($pipeline->table_status('audited', "tier || ' ' || collapsed"), 'executor false', 'the view says how');
is($pipeline->table_status('later', 'tier'), 'executor', 'a deferrable constraint asks for the executor too');
$pipeline->is_same('both are equal', 'audited', 'later');

# each commit carries its own time
$source->sql('insert into shop.later values (10, 10)');
$pipeline->wait_for_catchup;
$source->sql('insert into shop.later values (11, 11)');
$pipeline->wait_for_catchup;
is($postgres->psql('select count(distinct pg_xact_commit_timestamp(xmin)) from shop.later where id >= 10'), '2', 'two commits, two times');

# ---- rows that somebody else wrote: the change is carried out and counted
$postgres->psql('insert into shop.met values (2, -2), (3, -3); delete from shop.met where id = 1');
$source->sql('insert into shop.met values (2, 2)', 'update shop.met set v = 7 where id = 1', 'start transaction', 'insert into shop.met values (3, 3)', 'delete from shop.met where id = 3', 'commit');
$pipeline->wait_for_catchup;
is($pipeline->table_status('met', 'state'), 'streaming', 'an insert that finds a row does not stop the table') or diag($pipeline->table_status('met', 'last_error'));
$pipeline->is_same('and the source wins', 'met');
cmp_ok($pipeline->table_status('met', 'conflicts'), '>=', 3, 'conflicts are counted');

# ---- a row that the target's constraints refuse stops its table at its transaction, the others go on
$source->sql('insert into shop.met values (10, 10)', 'start transaction', 'insert into shop.filled values (4, 4)', 'insert into shop.filled values (5, -5)', 'commit',
	'insert into shop.met values (11, 11)', 'insert into shop.leaf values (100, 1)', 'insert into shop.met values (12, 12)');
$pipeline->wait_for_table_state($_, 'stopped') for 'filled', 'leaf';
$pipeline->wait_for_catchup;
is($pipeline->table_status('filled', 'last_error_sqlstate'), '23514', 'a check constraint');
unlike($pipeline->table_status('filled', 'last_error || coalesce(last_error_detail, \'\')'), qr/-5/, 'no value in the error');
is($postgres->psql('select max(id) from shop.filled'), '3', 'its transaction was not applied by half');
is($pipeline->table_status('leaf', 'last_error_sqlstate'), '23514', "a partition's own constraint");
$pipeline->is_same('the others go on', 'met');

# ---- random changes of few keys, against a reader's old snapshot and with every batch size
create_hot($source, 30);
$pipeline->stop->drop->drop_target;
for my $options ('{"batch_max_rows": 7}', '{"batch_max_ms": 0}', '{"collapse": "off"}', '{}')
{
	$pipeline->{options} = $options;
	$source->{seed} = $seed++;
	$source->start_writers(3, sub { my ($dbh, $number) = @_; change_hot($dbh, 30); });
	$pipeline->start;
	$pipeline->wait_for_state('streaming')->wait_for_tables;
	my $changes = $pipeline->status('changes');
	poll_until(sub { $pipeline->status('changes') > $changes + 300 }) or die "the stream stands still\n" . $pipeline->describe;
	$source->stop_writers;
	$pipeline->wait_for_catchup;
	$pipeline->is_mirrored("random changes, options $options");
	is($pipeline->status('tables_stopped'), '0', 'no table stopped') or diag($pipeline->describe);
	is($postgres->psql('select coalesce(sum(conflicts), 0) from pg_stat_cdc_table'), '0', 'no conflicts');
	is($pipeline->table_status('hot_row', 'coalesce(collapsed, false)'), 'f', 'not collapsed') if $options =~ /off/;
	$pipeline->stop->drop->drop_target;
}

# ---- dead letters
$postgres->psql(join(";\n", 'set client_min_messages = warning', 'create schema shop',
	'create table shop.letters (id int primary key, v int check (v < 100), note text, bytes bytea)',
	'create table shop.fine (id int primary key, v int)'));
$source->sql('create table shop.letters (id int primary key, v int, note varchar(30), bytes varbinary(10))', 'create table shop.fine (id int primary key, v int)');
$pipeline->{options} = '{"on_error": "dead_letter"}';
$pipeline->{tables} = '{shop.letters,shop.fine}';
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
$source->sql('start transaction', 'insert into shop.letters values (1, 1, \'good\', null)', 'insert into shop.letters values (2, 200, \'bad\', x\'00ff\')',
	'insert into shop.fine values (1, 1)', 'insert into shop.letters values (3, 3, \'good\', null)', 'commit', 'insert into shop.fine values (2, 2)');
$pipeline->wait_for_catchup;
is($postgres->psql('select id from shop.letters order by id'), "1\n3", 'the good ones are there');
$pipeline->is_same('of other tables too', 'fine');
is($postgres->psql("select operation, action, before, after, error_sqlstate, source_table, file is not null from cdc_dead_letters"),
	'insert|2||{"v": "200", "id": "2", "note": "bad", "bytes": {"hex": "00ff"}}|23514|letters|t', 'the bad one is kept');
is($pipeline->table_status('letters', "state || ' ' || dead_letters"), 'streaming 1', 'and counted');
$source->sql('update shop.letters set v = 50 where id = 2');
$pipeline->wait_for_catchup;
$pipeline->is_same('when it becomes good it arrives', 'letters');

# many of them, in one transaction and in several, with a kill in between: each once
$source->sql('start transaction', (map { "insert into shop.letters values ($_, " . ($_ % 3 ? 1 : 1000) . ", 'many', null)" } 100 .. 399), 'commit');
$source->sql(map { "insert into shop.letters values ($_, " . ($_ % 10 ? 1 : 1000) . ", 'few', null)" } 400 .. 499);
$postgres->poll('select count(*) > 1 from cdc_dead_letters', 't') or die "no change is kept\n" . $pipeline->describe;
$postgres->kill9_process($pipeline->status('ingest_pid'));
$pipeline->wait_for_state('streaming')->wait_for_catchup;
is($postgres->psql("select count(*), count(distinct after->>'id') from cdc_dead_letters where after->>'note' in ('many', 'few')"), '110|110', 'each bad change once');
is($postgres->psql("select count(*) from shop.letters where note in ('many', 'few')"), '290', 'and every good one');
is($postgres->psql("select bool_and((after->>'v')::int = 1000) from cdc_dead_letters where after->>'note' in ('many', 'few')"), 't', 'the right ones');

# who may read them
$postgres->psql('create role watcher in role pg_monitor');
is($postgres->psql('set role watcher; select count(*) from cdc_dead_letters'), '0', 'not for whoever may watch');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
