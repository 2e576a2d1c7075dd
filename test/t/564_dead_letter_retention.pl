# How long dead letters are kept: by age and by number, those that are settled first; what is lost is counted and told.
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
	options => '{"on_error": "dead_letter", "dead_letter_max_days": 0, "dead_letter_max_rows": 0}')->setup;
$source->sql('create database shop', map { "create table shop.$_ (id int primary key, v int)" } 'a', 'b');
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
$postgres->psql("alter table shop.$_ add check (v < 100)") for 'a', 'b';
$source->sql((map { "insert into shop.a values ($_, 1000)" } 1 .. 20), (map { "insert into shop.b values ($_, 1000)" } 1 .. 10), 'delete from shop.a where id <= 5');
$pipeline->wait_for_catchup;
sub letters { return $postgres->psql(q{select string_agg(source_table || ' ' || state || ' ' || n, ', ' order by source_table, state) from (select source_table, state, count(*) n from cdc_dead_letters group by 1, 2) s}); }
is(letters(), 'a superseded 5, a waiting 15, b waiting 10', 'letters, and some that are settled');

# ---- by age
$postgres->psql(q{update cdc_bridge.dead_letter set created_at = created_at - interval '40 days' where source_table = 'a' and (after->>'id')::int <= 8});
sub alter_options { $postgres->psql("select cdc_alter_pipeline('shop_in', options => '$_[0]')"); return; }
alter_options('{"dead_letter_max_days": 30}');
$postgres->poll(q{select count(*) from cdc_dead_letters}, '22') or diag(letters());
is(letters(), 'a waiting 12, b waiting 10', 'those of more than 30 days are gone');
ok($postgres->poll(q{select dead_letters_lost from pg_stat_cdc_table where source_table = 'a'}, '3'), 'what was still to be applied is counted as lost');
like($postgres->log_text, qr/LOG:  8 dead letters of pipeline "shop_in" were removed by age or number/, 'the log says it');
like($postgres->log_text, qr/DETAIL:  3 of them were still to be applied, and are lost: tables "shop\.a" \(3\)\./, 'with the tables');

# ---- by number: settled ones go first
$source->sql('delete from shop.b where id = 10', 'delete from shop.b where id = 9');
$pipeline->wait_for_catchup;
alter_options('{"dead_letter_max_rows": 21}');
$postgres->poll(q{select count(*) from cdc_dead_letters}, '21') or diag(letters());
is(letters(), 'a waiting 12, b superseded 1, b waiting 8', 'one that is settled goes first, however new it is');
alter_options('{"dead_letter_max_rows": 15}');
$postgres->poll(q{select count(*) from cdc_dead_letters}, '15') or diag(letters());
is(letters(), 'a waiting 7, b waiting 8', 'then the oldest of those that wait');
is($postgres->psql(q{select min((after->>'id')::int) from cdc_dead_letters where source_table = 'a'}), '14', 'the oldest ones');
ok($postgres->poll(q{select string_agg(dead_letters_lost::text, ',' order by source_table) from pg_stat_cdc_table}, '8,0'), 'all that was lost is counted');

# ---- what is kept can still be replayed
$postgres->psql('alter table shop.a drop constraint a_v_check; alter table shop.b drop constraint b_v_check');
my $number = $postgres->psql(q{select cdc_replay_dead_letters('shop_in')});
ok($postgres->poll("select state || ' ' || settled from cdc_dead_letter_requests where request = $number", 'done 15'), 'what is kept is replayed');
$pipeline->is_same('a table of which nothing was lost is whole', 'b');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
