# Dead letters of a table whose key becomes another one: a later change of their rows would not be known for one, so the table is copied
# anew, or stops when it has no key. An ALTER that leaves the key alone leaves the letters alone.
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
unlike($postgres->log_text, qr/\b(TRAP|PANIC):|terminated by signal/, 'no process crashed');
done_testing();
