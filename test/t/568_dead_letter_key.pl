# Dead letters of a table whose key becomes another one: a later change of their rows would not be known for one, so the table is copied
# anew, or stops when it has no key. An ALTER that leaves the key alone leaves the letters open, and their values follow their columns.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"on_error": "dead_letter"}')->setup;
my @tables = qw(retyped rekeyed same);
$source->sql('create database shop', 'create table shop.log (v int, note varchar(9))', map { my $type = $_ eq 'retyped' ? 'date' : 'int'; ("create table shop.$_ (id $type not null, code varchar(9) not null, v int, primary key (id))", "insert into shop.$_ values (20240101, 'a', 1)") } @tables);
$source->sql(sprintf("grant lock tables on shop.* to '%s'\@'%%'", $source->user)) if $source->is_mysql;
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
$postgres->psql("alter table shop.$_ add constraint small check (v < 100)") for @tables;
$source->sql(map { "insert into shop.$_ values (20240102, 'b', 200)" } @tables);
$pipeline->wait_for_catchup;
is($postgres->psql(q{select string_agg(source_table || ' ' || state, ', ' order by source_table) from cdc_dead_letters}), 'rekeyed waiting, retyped waiting, same waiting', 'a letter each');

# without a key rows are told by all their columns
$postgres->psql('alter table shop.log add constraint small check (v < 100)');
$source->sql('alter table shop.log comment \'no letters yet\', add w int', 'insert into shop.log values (300, \'c\', 1)', 'alter table shop.log comment \'a letter\'', 'insert into shop.log values (3, \'d\', 1)');
$pipeline->wait_for_catchup;
is($pipeline->table_status('log', 'state'), 'streaming', 'a table without a key is altered as long as it has no letters');
$source->sql('alter table shop.log add x int', 'delete from shop.log where v = 300');
$pipeline->wait_for_table_state('log', 'stopped');
like($pipeline->table_status('log', 'last_error_detail'), qr/^It has dead letters, which are found by the columns that it had, and a table without a key cannot be copied anew/, 'then it stops, and says why');

$source->sql('alter table shop.retyped modify id datetime not null', 'alter table shop.rekeyed drop primary key, add primary key (code)', 'alter table shop.same add w int',
	map { ("update shop.$_ set v = 2 where code = 'b'", "update shop.$_ set v = 3 where code = 'b'") } @tables);
$pipeline->wait_for_catchup;
$postgres->psql("alter table shop.$_ drop constraint small") for @tables;
ok($postgres->poll(q{select string_agg(distinct source_table || ' ' || state, ', ' order by source_table || ' ' || state) from cdc_dead_letters where source_table <> 'log'}, 'rekeyed superseded, retyped superseded, same superseded', 60), 'no letter is open')
  or diag($postgres->psql('select source_table, state, reason from cdc_dead_letters'));
is($postgres->psql(q{select string_agg(distinct source_table, ', ' order by source_table) from cdc_dead_letters where reason = 'the table was copied anew'}), 'rekeyed, retyped', 'by a new copy where the key is another one');
$pipeline->wait_for_tables;
$postgres->psql(q{select cdc_replay_dead_letters('shop_in')});
ok($postgres->poll(q{select count(*) from cdc_dead_letter_requests where state <> 'done'}, '0'), 'there is nothing to replay');
$pipeline->wait_for_catchup;
$pipeline->is_same('the newer rows are there', @tables);

# ---- columns that go, come, and change their names, before a letter is replayed
sub replay
{
	my $request = $postgres->psql(q{select cdc_replay_dead_letters('shop_in', '{shop.moved}')});
	$postgres->poll("select state in ('done', 'failed') from cdc_dead_letter_requests where request = $request", 't') or die "no end\n" . $pipeline->describe;
	return $postgres->psql("select concat_ws(' ', state, settled, failed, left_alone) from cdc_dead_letter_requests where request = $request");
}
sub columns { return $postgres->psql("select string_agg(operation || ' ' || coalesce(after, before)::text, e'\n' order by dead_letter_id) from cdc_dead_letters where state in ('waiting', 'failed') and source_table = 'moved'"); }
$source->sql('create table shop.moved (id int primary key, a int, c varchar(9), v int)', q{insert into shop.moved values (1, 1, 'one', 1)});
$pipeline->wait_for_table_state('moved', 'streaming');
$pipeline->wait_for_catchup;
$postgres->psql('alter table shop.moved add constraint small check (v < 100)');
$source->sql(q{insert into shop.moved values (2, 2, 'old', 200)}, q{update shop.moved set a = 5, c = 'older', v = 300 where id = 1},
	'alter table shop.moved drop c', q{alter table shop.moved add c varchar(9) default 'new'}, q{alter table shop.moved alter c set default 'later'}, 'alter table shop.moved change a b int, change v a int');
$pipeline->wait_for_catchup;
is(columns(), qq{insert {"a": "200", "b": "2", "c": "new", "id": "2"}\nupdate {"a": "300", "b": "5", "c": "new", "id": "1"}},
	'letters follow: by the new names, without what was dropped, with the default of then');
$postgres->psql('alter table shop.moved drop constraint small');
is(replay(), 'done 2 0 0', 'they are replayed') or diag($postgres->psql(q{select error, error_detail from cdc_dead_letters where state = 'failed'}));
$pipeline->is_same('and rows are what the source made of them', 'moved');

# what the target keeps although the source drops it is not lost in silence
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"schema_changes": "lenient"}')});
$postgres->psql('alter table shop.moved add constraint small check (a < 400)');
$source->sql(q{insert into shop.moved (id, a, c) values (7, 700, 'mine')}, 'alter table shop.moved drop c');
$pipeline->wait_for_catchup;
$postgres->psql('alter table shop.moved drop constraint small');
is(replay(), 'done 0 1 0', 'a value for a column that only the target has fails');
is($postgres->psql(q{select error_detail from cdc_dead_letters where state = 'failed'}), 'The source has dropped the column since, and the target keeps it.', 'and says why');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):|terminated by signal/, 'no process crashed');
done_testing();
