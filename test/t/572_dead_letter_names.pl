# Dead letters go with their table: tables exchange their names and get new ones, the letters are found by what their table is called now.
# A row that does not fit into a new copy of a "soft_delete" target has a mark there, and is alive again when its letter is replayed.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"on_error": "dead_letter", "transforms": [{"tables": "shop.kept", "target": "soft_delete"}]}')->setup;
my @tables = qw(t u kept);
$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, 1), (2, 2), (3, 3)") } @tables);
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
$postgres->psql("alter table shop.$_ add constraint small check (v < 100)") for @tables;

sub letters { return $postgres->psql(q{select string_agg(concat_ws(' ', source_table, after->>'id', state), ', ' order by after->>'id') from cdc_dead_letters where source_table <> 'kept'}); }
sub request
{
	my ($function, $arguments) = @_;
	my $number = $postgres->psql("select $function('shop_in', $arguments)");
	$postgres->poll("select state in ('done', 'failed') from cdc_dead_letter_requests where request = $number", 't') or die "request $number does not end\n" . $pipeline->describe;
	return $postgres->psql("select concat_ws(' ', state, settled, failed, left_alone) from cdc_dead_letter_requests where request = $number");
}

# ---- names
$source->sql('insert into shop.t values (5, 500)', 'insert into shop.u values (6, 600)', 'insert into shop.u values (7, 700)', 'rename table shop.t to shop.x, shop.u to shop.t, shop.x to shop.u');
$pipeline->wait_for_catchup;
is(letters(), 'u 5 waiting, t 6 waiting, t 7 waiting', 'letters follow tables that exchange their names');
is(request('cdc_discard_dead_letters', q{ids => array[(select dead_letter_id from cdc_dead_letters where after->>'id' = '7')]}), 'done 1 0 0', 'one is given up');
$postgres->psql("alter table shop.$_ drop constraint small") for qw(t u);
is(request('cdc_replay_dead_letters', q{'{shop.t}'}), 'done 1 0 0', 'a pattern means what the tables are called now');
is($postgres->psql(q{select (select string_agg(id::text, ' ' order by id) from shop.t) || ', ' || (select string_agg(id::text, ' ' order by id) from shop.u)}), '1 2 3 6, 1 2 3', 'and the letter goes there');
$source->sql('rename table shop.u to shop.v');
$pipeline->wait_for_catchup;
is(letters(), 'v 5 waiting, t 6 replayed, t 7 discarded', 'a new name, for letters that are open');
is(request('cdc_replay_dead_letters', q{'{shop.v}'}), 'done 1 0 0', 'by which they are found');
$pipeline->is_same('the row is there', 'v');

# ---- a new copy of a target that keeps deleted rows
my $rows = q{select string_agg(id || case when cdc_deleted then '-' else '+' end || v, ' ' order by id) from shop.kept};
$source->sql('delete from shop.kept where id = 3', 'update shop.kept set v = 200 where id = 2');
$pipeline->wait_for_catchup;
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.kept')});
ok($postgres->poll(q{select string_agg(operation || ' ' || state, ', ' order by dead_letter_id) from cdc_dead_letters where source_table = 'kept'}, 'update superseded, snapshot waiting', 60), 'its copy makes a letter anew') or diag($pipeline->describe);
$pipeline->wait_for_tables;
is($postgres->psql($rows), '1+1 2-2 3-3', 'the new copy lacks the row');
$postgres->psql('alter table shop.kept drop constraint small');
is(request('cdc_replay_dead_letters', q{'{shop.kept}'}), 'done 1 0 0', 'replayed');
is($postgres->psql($rows), '1+1 2+200 3-3', 'the row is alive again');
is($postgres->psql(q{select string_agg(state, ', ' order by dead_letter_id) from cdc_dead_letters where source_table = 'kept'}), 'superseded, replayed', 'by its letter');
$source->sql('delete from shop.t where id = 7');
$pipeline->wait_for_catchup;
$pipeline->is_verified('both servers have the same');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
