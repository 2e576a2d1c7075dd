# What foreign keys of the source do to rows that are dead letters, where the log has nothing of it: their letters go with the rows, or follow
# them, and where that cannot be told the table is copied anew.
# cells: mariadb-15

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.p (id int primary key)', 'insert into shop.p values (1), (2), (3), (4), (5)',
	'create table shop.gone (id int primary key, pid int, v int, foreign key (pid) references shop.p (id) on delete cascade on update cascade)',
	'create table shop.deep (id int primary key, gid int, foreign key (gid) references shop.gone (id) on delete cascade)',
	'create table shop.kept (id int primary key, pid int, v int, foreign key (pid) references shop.p (id) on delete set null)',
	'create table shop.bag (pid int, v int, foreign key (pid) references shop.p (id) on delete cascade)',
	map { "insert into shop.$_ (pid, v) values (5, 5)" } 'bag');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"on_error": "dead_letter", "batch_max_ms": 0}')->setup;
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
my @tables = qw(gone kept bag);
my $letters = q{select string_agg(concat_ws(' ', source_table, operation, coalesce(after ->> 'id', after ->> 'v'), coalesce(after ->> 'pid', 'null'), state), ', ' order by dead_letter_id) from cdc_dead_letters where state <> 'replayed'};
sub forbid { $postgres->psql("alter table shop.$_ add constraint small check (v < 100) not valid") for @tables; return; }
sub allow { $postgres->psql("alter table shop.$_ drop constraint small") for @tables; return; }
sub replay
{
	my $request = $postgres->psql(q{select cdc_replay_dead_letters('shop_in')});
	$postgres->poll("select state in ('done', 'failed') from cdc_dead_letter_requests where request = $request", 't') or die "no end\n" . $pipeline->describe;
	return $postgres->psql("select concat_ws(' ', state, settled, failed, left_alone) from cdc_dead_letter_requests where request = $request");
}

# ---- rows that the target does not have
forbid();
$source->sql((map { ("insert into shop.$_ values (1, 1, 200)", "insert into shop.$_ values (2, 2, 200)") } qw(gone kept)), 'insert into shop.bag values (1, 200), (2, 200)', 'insert into shop.deep values (1, 1), (2, 2)');
$pipeline->wait_for_catchup;
$source->sql('delete from shop.p where id = 1');
$pipeline->wait_for_catchup;
is($postgres->psql($letters), 'gone insert 1 1 superseded, gone insert 2 2 waiting, kept insert 1 null waiting, kept insert 2 2 waiting, bag insert 200 1 superseded, bag insert 200 2 waiting',
	'letters of rows that a foreign key deleted are settled, and those of rows that lost their parent have a null');
is($postgres->psql(q{select distinct reason from cdc_dead_letters where state = 'superseded'}) =~ s/transaction at .*/transaction/r, 'a foreign key of the source deleted its row, in the source transaction', 'with the reason');
$pipeline->is_same('rows that refer to one that is a letter go, too', 'deep');
allow();
is(replay(), 'done 4 0 0', 'the others are replayed');
$pipeline->is_same('and nothing comes back', @tables, 'deep');

# ---- a row that the target has in an older state
forbid();
$source->sql('insert into shop.gone values (4, 4, 1)', 'update shop.gone set pid = 3, v = 300 where id = 4', 'insert into shop.gone values (5, 5, 1)', 'update shop.gone set v = 300 where id = 5');
$pipeline->wait_for_catchup;
allow();
$source->sql('delete from shop.p where id = 4', 'insert into shop.gone values (6, 2, 6)');
ok($postgres->poll(q{select string_agg(distinct reason, ' ') from cdc_dead_letters where operation = 'update'}, 'the table was copied anew'), 'a row that is another one here than there has its table copied anew') or diag($postgres->psql($letters), $pipeline->describe);
$pipeline->wait_for_catchup->wait_for_tables->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_same('which has it as the source does', @tables, 'deep');

# ---- another value
forbid();
$source->sql('insert into shop.gone values (7, 3, 300)');
$pipeline->wait_for_catchup;
allow();
$source->sql('update shop.p set id = 33 where id = 3', 'insert into shop.gone values (8, 2, 6)');
ok($postgres->poll(q{select reason from cdc_dead_letters where after ->> 'id' = '7'}, 'the table was copied anew'), 'so has one that names another value then') or diag($postgres->psql($letters), $pipeline->describe);
$pipeline->wait_for_catchup->wait_for_tables->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_same('and all is equal', @tables, 'deep');
is($postgres->psql(q{select string_agg(source_table || ' ' || last_error, ' ') from pg_stat_cdc_table where state <> 'streaming'}), '', 'no table stopped');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):|terminated by signal/, 'no process crashed');

done_testing();
