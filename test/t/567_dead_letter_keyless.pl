# Dead letters of a table without a key: rows count. An update is a row that goes and one that comes, and each that does not fit becomes a
# letter. A row that goes again at the source takes one letter along.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { heartbeat_interval => 300 },
	options => '{"on_error": "dead_letter"}')->setup;
$source->sql('create database shop', 'create table shop.log (v int, note varchar(20), d datetime)', q{insert into shop.log values (1, 'one', null), (1, 'one', null), (2, 'two', null)}, 'create table shop.fine (id int primary key)');
$source->sql(sprintf("grant lock tables on shop.* to '%s'\@'%%'", $source->user)) if $source->is_mysql;
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
is($pipeline->table_status('log', 'state'), 'streaming', 'the table streams') or diag($pipeline->describe);
$postgres->psql('alter table shop.log add check (v < 100)');
sub rows { return $postgres->psql(q{select string_agg(v || ' ' || note, ', ' order by v, note) from shop.log}); }
sub letters { return $postgres->psql(q{select string_agg(state || ' ' || n, ', ' order by state) from (select state, count(*) n from cdc_dead_letters group by 1) s}); }
sub replay
{
	my $request = $postgres->psql(q{select cdc_replay_dead_letters('shop_in')});
	$postgres->poll("select state in ('done', 'failed') from cdc_dead_letter_requests where request = $request", 't') or die "no end\n" . $pipeline->describe;
	return $postgres->psql("select concat_ws(' ', state, settled, failed, left_alone) from cdc_dead_letter_requests where request = $request");
}

$source->sql('start transaction', 'insert into shop.fine values (1)', q{insert into shop.log values (3, 'three', null), (500, 'bad', null), (500, 'bad', null), (500, 'bad', null), (600, 'moves', null), (700, 'goes', null)},
	q{delete from shop.log where v = 1 limit 1}, q{insert into shop.log values (4, 'four', null)}, 'commit');
$pipeline->wait_for_catchup;
is($pipeline->table_status('log', 'state'), 'streaming', 'rows that do not fit do not stop it') or diag($pipeline->table_status('log', 'last_error'));
is(rows(), '1 one, 2 two, 3 three, 4 four', 'the others are there, also what went');
is(letters(), 'waiting 5', 'each of equal rows is a letter');
$pipeline->is_same('other tables go on', 'fine');

$source->sql('delete from shop.log where v = 700', 'update shop.log set v = 60 where v = 600', 'delete from shop.log where v = 500 limit 1');
$pipeline->wait_for_catchup;
is(letters(), 'superseded 3, waiting 2', 'a row that goes again, or changes, takes one letter along');
is(rows(), '1 one, 2 two, 3 three, 4 four, 60 moves', 'what it became is there');
is($pipeline->table_status('log', 'conflicts'), '0', 'and that is no conflict');
is(replay(), 'done 0 2 0', 'with the cause still there they fail again');
$postgres->psql('alter table shop.log drop constraint log_v_check');
is(replay(), 'done 2 0 0', 'without it they are replayed');
$pipeline->is_same('as many of each row as the source has', 'log');

# ---- a value that has no form has no row to be known by
$source->sql(q{set sql_mode = ''}, q{insert into shop.log values (8, 'zero', '0000-00-00')});
$pipeline->wait_for_catchup;
is($postgres->psql(q{select error_sqlstate from cdc_dead_letters where state = 'waiting'}), '22008', 'a zero date');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"zero_date": "epoch"}')});
is(replay(), 'done 1 0 0', 'with another policy it is replayed');
is($postgres->psql(q{select d from shop.log where v = 8}), '1970-01-01 00:00:00', 'as that says');

# ---- an update: the row before goes, the one after it is a letter
sub open_letters { return $postgres->psql(q{select string_agg(operation || ' ' || coalesce(before ->> 'v', '-') || ' ' || coalesce(after ->> 'v', '-'), ', ' order by dead_letter_id) from cdc_dead_letters where state in ('waiting', 'failed')}); }
$postgres->psql('alter table shop.log add constraint fits check (v < 900)');
$source->sql('start transaction', 'update shop.log set v = 900 where v = 2', 'update shop.log set v = 901 where v = 3', 'insert into shop.fine values (2)', 'update shop.log set v = 5 where v = 4', 'commit');
$pipeline->wait_for_catchup;
is($pipeline->table_status('log', 'state'), 'streaming', 'an update that does not fit does not stop it') or diag($pipeline->table_status('log', 'last_error'));
is(open_letters(), 'insert 2 900, insert 3 901', 'what it makes of its row is a letter');
is($postgres->psql('select count(*) from shop.log where v between 2 and 4'), '0', 'and the row before is gone');
$source->sql('delete from shop.log where v = 900', 'update shop.log set v = 6 where v = 901');
$pipeline->wait_for_catchup;
is(open_letters(), '', 'later changes of these rows take their letters along');
is($pipeline->table_status('log', 'conflicts'), '0', 'without a conflict');
$postgres->psql('alter table shop.log drop constraint fits');
$pipeline->is_same('the other half of each is there', 'fine');

# ---- a delete whose row cannot be told here
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"zero_date": "error"}')});
$source->sql(q{set sql_mode = ''}, 'delete from shop.log where v = 8', 'insert into shop.fine values (3)');
$pipeline->wait_for_catchup;
is(open_letters(), 'delete 8 -', 'a delete with a value that has no form');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"zero_date": "epoch"}')});
my $moved = q{with gone as (delete from shop.log where v = 8 returning *) insert into shop.log select v + 80, note, d from gone};
$postgres->psql($moved);
is(replay(), 'done 0 1 0', 'fails where its row is not there');
$postgres->psql($moved =~ s/v = 8/v = 88/r =~ s/v \+ 80/v - 80/r);
is(replay(), 'done 1 0 0', 'is done with another policy where it is');
$pipeline->is_same('and takes its row away', 'log', 'fine');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
