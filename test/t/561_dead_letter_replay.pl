# What becomes of dead letters: replayed in the order of their changes, superseded by later changes of their rows, failed again,
# discarded. No older row ever comes back over a newer one, and every value comes back as it was.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use CdcBridge::Types;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { heartbeat_interval => 300 },
	options => '{"on_error": "dead_letter"}')->setup;
my @types = CdcBridge::Types::all($source);
$source->sql('create database shop', q{set sql_mode = ''},
	'create table shop.orders (id int primary key, v int, note varchar(30))', 'insert into shop.orders values (1, 1, \'one\'), (2, 2, \'two\'), (3, 3, \'three\'), (4, 4, \'four\'), (5, 5, \'five\')',
	'create table shop.part (id int primary key, v int, note varchar(30), w int)', q{insert into shop.part values (1, 1, 'one', 1), (2, 2, 'two', 2), (3, 3, 'three', 3)},
	map { "create table shop.`$_->{name}` (id int primary key, v $_->{sql})" } @types);
$pipeline->start->wait_for_state('streaming')->wait_for_tables;

# a gate in front of every table: as long as it is shut no change gets in
$postgres->psql(join(";\n", 'create schema gate', 'create table gate.shut (name text)', 'grant usage on schema gate to public', 'grant select on gate.shut to public',
	q{create function gate.check() returns trigger language plpgsql as $$ begin
		if exists (select from gate.shut where name in (tg_table_name, '*')) then raise exception 'the gate of % is shut', tg_table_name; end if;
		return coalesce(new, old); end $$},
	map { (qq{create trigger gate before insert or update or delete on shop."$_" for each row execute function gate.check()}, qq{alter table shop."$_" enable always trigger gate}) }
	  'orders', 'part', map { $_->{name} } @types));
sub shut { $postgres->psql("insert into gate.shut values ('$_')") for @_; return; }
sub open_gates { $postgres->psql('delete from gate.shut'); return; }
sub states { my ($table) = @_; return $postgres->psql("select string_agg(operation || ' ' || state, ', ' order by dead_letter_id) from cdc_dead_letters where source_table = '$table'"); }

# Ask, and wait for the end of it: "state settled failed left_alone".
sub request
{
	my ($function, $arguments) = @_;
	my $number = $postgres->psql("select $function('shop_in'" . ($arguments ? ", $arguments" : '') . ')');
	$postgres->poll("select state in ('done', 'failed') from cdc_dead_letter_requests where request = $number", 't') or die "request $number does not end\n" . $pipeline->describe;
	return $postgres->psql("select concat_ws(' ', state, settled, failed, left_alone) from cdc_dead_letter_requests where request = $number");
}

# ---- letters of one table, replayed in order
shut('orders');
$source->sql(q{insert into shop.orders values (10, 10, 'ten')}, q{update shop.orders set v = 11 where id = 10}, 'delete from shop.orders where id = 2',
	'update shop.orders set id = 30 where id = 3', q{update shop.orders set note = 'FOUR' where id = 4});
$pipeline->wait_for_catchup;
is(states('orders'), 'insert waiting, update waiting, delete waiting, update waiting, update waiting', 'each change is a letter');
is($postgres->psql('select count(*) from cdc_dead_letters where changed_at between now() - interval \'5 min\' and now() + interval \'1 min\' and attempts = 1 and last_attempt_at = created_at'), '5', 'with its times');
is(request('cdc_replay_dead_letters'), 'done 0 5 0', 'with the cause still there they fail again');
is(states('orders'), 'insert failed, update failed, delete failed, update failed, update failed', 'and say so');
is($postgres->psql('select distinct attempts, error_sqlstate from cdc_dead_letters'), '2|P0001', 'and count it');
open_gates();
is(request('cdc_replay_dead_letters', q{ids => array[(select min(dead_letter_id) from cdc_dead_letters)]}), 'done 1 0 0', 'one letter by its number');
is($postgres->psql('select v from shop.orders where id = 10'), '10', 'is applied as it was');
is(request('cdc_replay_dead_letters', q{tables => '{shop.nothing_*}'}), 'done 0 0 0', 'other tables have none');
is(request('cdc_replay_dead_letters', q{tables => '{shop.ord*}'}), 'done 4 0 0', 'then the rest');
$pipeline->is_same('the table is whole again', 'orders');
is(states('orders'), join(', ', map { "$_ replayed" } qw(insert update delete update update)), 'all are replayed');

# ---- what was applied since is never overwritten
$postgres->psql('delete from gate.shut');
shut('orders');
$source->sql(q{insert into shop.orders values (20, 1, 'old')}, q{insert into shop.orders values (21, 1, 'old')}, q{update shop.orders set v = 100 where id = 1},
	'delete from shop.orders where id = 5', 'update shop.orders set id = 40 where id = 4', q{insert into shop.orders values (22, 1, 'waits')});
$pipeline->wait_for_catchup;
open_gates();
$source->sql(q{update shop.orders set note = 'new' where id = 20}, 'delete from shop.orders where id = 21', q{update shop.orders set note = 'newer' where id = 1},
	q{insert into shop.orders values (5, 50, 'again')}, q{insert into shop.orders values (4, 44, 'another')});
$pipeline->wait_for_catchup;
is($postgres->psql(q{select string_agg(coalesce(after->>'id', before->>'id') || ' ' || state, ', ' order by dead_letter_id) from cdc_dead_letters where state <> 'replayed'}),
	'20 superseded, 21 superseded, 1 superseded, 5 superseded, 40 waiting, 22 waiting', 'later changes of their rows make letters moot');
like($postgres->psql(q{select min(reason) from cdc_dead_letters where state = 'superseded'}), qr/^a later change of its row was applied, of the source transaction at \S+:\d+$/, 'which say why');
is(request('cdc_replay_dead_letters'), 'done 2 0 0', 'the others are replayed');
$pipeline->is_same('of an update that left its key only the half that nobody did since', 'orders');

# ---- a later letter that is replayed first makes the earlier one moot
shut('orders');
$source->sql(q{update shop.orders set v = 7 where id = 1}, q{update shop.orders set v = 8 where id = 1});
$pipeline->wait_for_catchup;
open_gates();
is(request('cdc_replay_dead_letters', q{ids => array[(select max(dead_letter_id) from cdc_dead_letters)]}), 'done 1 0 0', 'the newer one by its number');
is(request('cdc_replay_dead_letters'), 'done 0 0 0', 'nothing is left');
like($postgres->psql(q{select reason from cdc_dead_letters order by dead_letter_id desc limit 1 offset 1}), qr/^dead letter \d+, a later change of its row, was applied$/, 'the older one says which');
$pipeline->is_same('and the row is right', 'orders');

# ---- images that tell only a part of the row
$source->sql(q{set session binlog_row_image = 'MINIMAL'});
shut('part');
$source->sql('update shop.part set v = 200, w = 10 where id = 1', 'update shop.part set v = 300 where id = 2', 'update shop.part set v = 400 where id = 3');
$pipeline->wait_for_catchup;
open_gates();
$source->sql(q{update shop.part set note = 'uno' where id = 1}, 'update shop.part set w = 11 where id = 1', 'update shop.part set v = 301 where id = 2');
$pipeline->wait_for_catchup;
is(states('part'), 'update waiting, update superseded, update waiting', 'a letter lives as long as a column of it is the newest');
is(request('cdc_replay_dead_letters', q{tables => '{shop.part}'}), 'done 2 0 0', 'what is left is replayed');
$pipeline->is_same('columns that were set since keep what they have', 'part');
$source->sql(q{set session binlog_row_image = 'FULL'});

# ---- each type's values, through insert, update, change of key and delete
shut('*');
for my $type (@types)
{
	my @values = ('null', @{ $type->{values} });
	$source->sql('begin', (map { "insert into shop.`$type->{name}` (id, v) values ($_, $values[$_])" } 0 .. $#values),
		(map { "update shop.`$type->{name}` set v = $values[$_ - 1] where id = $_" } 1 .. $#values), "update shop.`$type->{name}` set id = 500 where id = 0",
		"delete from shop.`$type->{name}` where id = $#values", 'commit');
}
$pipeline->wait_for_catchup;
open_gates();
my $waiting = $postgres->psql(q{select count(*) from cdc_dead_letters where state = 'waiting'});
cmp_ok($waiting, '>', 500, "$waiting letters wait");
my $failed = $postgres->psql(q{select count(*) from cdc_dead_letters where state = 'waiting' and (jsonb_path_exists(before, '$.*.raw') or jsonb_path_exists(after, '$.*.raw'))});
is($failed, '0', 'each could be read');
# a worker that dies on the way goes on where its transactions ended
my $number = $postgres->psql(q{select cdc_replay_dead_letters('shop_in')});
$postgres->poll("select settled > 0 from cdc_dead_letter_requests where request = $number", 't');
$postgres->kill9_process($pipeline->status('ingest_pid'));
$pipeline->wait_for_state('streaming');
$postgres->poll("select state in ('done', 'failed') from cdc_dead_letter_requests where request = $number", 't') or die "request $number does not end\n" . $pipeline->describe;
is($postgres->psql("select concat_ws(' ', state, settled, failed, left_alone) from cdc_dead_letter_requests where request = $number"), "done $waiting 0 0", 'all are replayed, also over a crash')
  or diag($postgres->psql(q{select source_table, error, error_detail, after from cdc_dead_letters where state = 'failed' limit 5}));
$pipeline->are_same('what letters brought is what the source has', {}, map { $_->{name} } @types);

# ---- a copy makes all of a table's letters moot; what nobody wants is discarded
shut('orders');
$source->sql(q{insert into shop.orders values (60, 1, 'x')}, q{insert into shop.orders values (61, 1, 'y')});
$pipeline->wait_for_catchup;
is(request('cdc_discard_dead_letters', q{ids => array[(select min(dead_letter_id) from cdc_dead_letters where state = 'waiting')], reason => 'not needed'}), 'done 1 0 0', 'one is given up');
is($postgres->psql(q{select after->>'id', reason from cdc_dead_letters where state = 'discarded'}), '60|not needed', 'and says why');
$postgres->psql('drop trigger gate on shop.orders');    # with it there would be no copy beside the rows
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.orders')});
$postgres->poll(q{select count(*) from cdc_dead_letters where state = 'superseded' and reason = 'the table was copied anew'}, '1') or diag($pipeline->describe);
$pipeline->wait_for_table_state('orders', 'streaming');
is($postgres->psql(q{select count(*) from cdc_dead_letters where state in ('waiting', 'failed')}), '0', 'a new copy leaves no letter open');
$pipeline->is_same('and brings both rows', 'orders');

# ---- what cannot be turned back says so
$postgres->psql('alter table shop.orders add constraint small check (v <> 1) not valid');
$source->sql(q{insert into shop.orders values (70, 1, 'x')});
$pipeline->wait_for_catchup;
$postgres->psql(q{update cdc_bridge.dead_letter set after = after || '{"v": {"raw": "00"}}' where state = 'waiting'});
is(request('cdc_replay_dead_letters'), 'done 0 1 0', 'a value that could not be read');
is($postgres->psql(q{select error, error_detail from cdc_dead_letters where state = 'failed'}), 'column "v" of the dead letter cannot be turned back into a value|Its bytes could not be decoded when they came.', 'names the column');
$postgres->psql(q{update cdc_bridge.dead_letter set after = after - 'v' || '{"gone": "1"}' where state = 'failed'});
is(request('cdc_replay_dead_letters'), 'done 0 1 0', 'nor a column that is gone');
$source->sql(q{update shop.orders set v = 2 where id = 70});
$pipeline->wait_for_catchup;
is($postgres->psql(q{select count(*) from cdc_dead_letters where state in ('waiting', 'failed')}), '0', 'a later change settles these too');
$pipeline->is_same('in the end all is the same', 'orders');
$source->sql(q{insert into shop.orders values (80, 1, 'x')}, 'truncate table shop.orders', q{insert into shop.orders values (81, 5, 'y')});
$pipeline->wait_for_catchup;
is($postgres->psql(q{select state, reason from cdc_dead_letters where after->>'id' = '80'}), 'superseded|the table was truncated', 'a TRUNCATE settles the letters of its table');
$pipeline->is_same('which has what came after it', 'orders');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
