# Tables join a pipeline that runs, and leave it: cdc_add_table, cdc_remove_table, patterns that leave tables out. They join under
# 8 writers, while workers are killed, and end equal to the source.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Shop qw(change_hot change_shop create_hot create_shop fill_shop);
use CdcBridge::Source;
use Test::More;

my $rows = 2000;
my $seed = $ENV{CDC_SEED} // time();
diag("seed $seed");
srand($seed);
my $source = CdcBridge::Source->new(args => ['--sync-binlog=1']);
my $postgres = CdcBridge::Postgres->new;
create_shop($source);
fill_shop($source, $rows);
create_hot($source, 40);
my @tables = sort map { $_->[0] } $source->query_rows(q{select table_name from information_schema.tables where table_schema = 'shop'});
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, tables => '{shop.customer,shop.orders}',
	options => '{"snapshot_chunk_rows": 50, "schema_changes": "exception"}')->setup;

sub add { my (@names) = @_; $postgres->psql(join(';', map { "select cdc_add_table('shop_in', 'shop.$_')" } @names)); return; }
sub remove { my (@names) = @_; $postgres->psql(join(';', map { "select cdc_remove_table('shop_in', 'shop.$_')" } @names)); return; }
sub mirrored { return $postgres->psql(q{select coalesce(string_agg(source_table, ' ' order by source_table), '') from pg_stat_cdc_table}); }
sub worker { my ($kind) = @_; return $postgres->psql("select pid from pg_stat_activity where backend_type = 'cdc_bridge $kind worker' limit 1"); }

# Both sides are equal in the tables that the pipeline has.
sub is_equal
{
	my ($name) = @_;
	$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state <> 'streaming'}), '0', "$name: no table is stopped") or diag($pipeline->describe);
	return $pipeline->is_mirrored($name, split(/ /, mirrored()));
}

# 1. under writers, again and again, with kills in between
$pipeline->start->wait_for_state('streaming');
for my $round (1 .. 3)
{
	$source->{seed} = $seed + $round;
	$source->start_writers(8, sub { my ($dbh, $number) = @_; $number % 2 ? change_hot($dbh, 40) : change_shop($dbh, $rows); });
	my @others = grep { !/^(customer|orders)$/ } @tables;
	while (my @some = splice(@others, 0, 3))
	{
		add(@some);
		# the random moment: here the passing of time is the point, there is nothing to poll for
		poll_until(sub { return 0 }, rand(0.4));
		my $kind = (qw(ingest snapshot))[ rand 2 ];
		my ($status, $pid) = $postgres->try_psql("select pid from pg_stat_activity where backend_type = 'cdc_bridge $kind worker' limit 1");
		$postgres->kill9_process($pid) if $round > 1 && $pid;
		note("round $round: added @some" . ($round > 1 && $pid ? ", killed a $kind worker" : ''));
	}
	$pipeline->wait_for_tables;
	$source->stop_writers;
	is(mirrored(), join(' ', @tables), "round $round: all tables have joined");
	is_equal("round $round: tables that joined under 8 writers equal the source");
	is($postgres->psql('select count(*) from cdc_bridge.snapshot_deleted'), '0', "round $round: no notes of the copies are left");
	# they leave, and their targets stay
	remove(grep { !/^(customer|orders)$/ } @tables);
	ok($postgres->poll(q{select count(*) from cdc_bridge.table_state}, '2'), "round $round: their rows are gone") or diag($pipeline->describe);
	isnt($postgres->psql('select count(*) from shop.product'), '0', "round $round: the target stays");
	$postgres->psql(join(';', map { "drop table shop.$_" } grep { !/^(customer|orders)$/ } @tables));
}

# 2. what has left is no longer followed, the others are
add('product');
is_equal('joined again');
remove('product');
$pipeline->wait_for_state('streaming');
my $before = $postgres->psql('select count(*) from shop.product');
$source->sql(q{insert into shop.product (sku, title, price, stock) values ('left', 'x', 1, 1)}, q{insert into shop.customer (email, name, created_at) values ('left@x', 'x', now())});
is_equal('the others go on');
is($postgres->psql('select count(*) from shop.product'), $before, 'a table that left is not followed');
# its target is not empty: joining again is refused, with a way out
add('product');
$pipeline->wait_for_state('streaming');
is($pipeline->table_status('product', 'state'), 'stopped', 'a target with rows is refused');
like($pipeline->table_status('product', 'last_error'), qr/exists and has rows/, 'message');
like($pipeline->table_status('product', 'last_error_hint'), qr/cdc_resync_table/, 'hint');
$postgres->psql(q{truncate shop.product; select cdc_resync_table('shop_in', 'shop.product')});
is_equal('emptied and copied anew');

# 3. ROLLBACK undoes all; nothing joins
my $list = $postgres->psql('select tables from cdc_bridge.pipeline');
$postgres->psql(q{begin; select cdc_add_table('shop_in', 'shop.payment'); select cdc_remove_table('shop_in', 'shop.customer'); select cdc_resync_table('shop_in', 'shop.orders'); rollback});
is($postgres->psql('select tables from cdc_bridge.pipeline'), $list, 'ROLLBACK: the list is as before');
is($postgres->psql('select count(*) from cdc_bridge.pipeline_state where tables_asked <> tables_done'), '0', 'ROLLBACK: nothing is asked for');
is_equal('after ROLLBACK');
is(mirrored(), 'customer orders product', 'ROLLBACK: the same tables');

# 4. while it is stopped; a wildcard; one table left out and taken in again
$pipeline->stop;
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.*'); select cdc_remove_table('shop_in', 'shop.payment')});
like($postgres->{messages}, qr/takes effect when it is started/, 'a notice says when');
is($postgres->psql('select tables from cdc_bridge.pipeline'), '{shop.customer,shop.orders,shop.product,shop.*,!shop.payment}', 'the list');
$source->sql(q{update shop.customer set name = 'while stopped' where id < 20}, q{update shop.order_item set quantity = 77 where line = 1});
$pipeline->start;
is_equal('added while stopped');
is(mirrored(), join(' ', grep { $_ ne 'payment' } @tables), 'all but the one left out');
$postgres->psql(q{select cdc_remove_table('shop_in', 'shop.product')});
$pipeline->wait_for_state('streaming');
$source->sql('create table shop.fresh (id int primary key, v int)', 'insert into shop.fresh values (1, 1)');
$pipeline->wait_for_catchup;
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.payment')});
is_equal('taken in again');
is(mirrored(), join(' ', sort('fresh', grep { $_ ne 'product' } @tables)), 'and a table that was made since joins too; the one that left stays away');
is($postgres->psql('select tables from cdc_bridge.pipeline'), '{shop.customer,shop.orders,shop.*,!shop.product}', 'the list');
$source->sql('insert into shop.fresh values (2, 2)', 'update shop.fresh set v = 3 where id = 1');
is_equal('it is followed');

# 5. stopped by a change of shape: mended on both sides and copied anew
$source->sql('alter table shop.customer add column more int', 'alter table shop.orders add column more int');
$pipeline->wait_for_table_state($_, 'stopped') for qw(customer orders);
like($pipeline->table_status('orders', 'last_error_hint'), qr/cdc_resync_table/, 'the hint of a stopped table');
$postgres->psql('alter table shop.customer add column more int; alter table shop.orders add column more int');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.customer'); select cdc_resync_table('shop_in', 'shop.orders')});
is_equal('stopped tables are copied anew');

# 6. one that the user may not read stops alone, with the grant to run
my $user = $source->user;
$source->sql("revoke select on *.* from '$user'\@'%'", (map { "grant select on shop.$_ to '$user'\@'%'" } 'fresh', @tables),
	'create table shop.secret (id int primary key, v int)', 'insert into shop.secret values (1, 1)', "grant insert on shop.secret to '$user'\@'%'");
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.secret')});
$pipeline->wait_for_table_state('secret', 'stopped');
like($pipeline->table_status('secret', 'last_error'), qr/does not let the user read table/, 'a table that may not be read stops');
like($pipeline->table_status('secret', 'last_error_hint'), qr/GRANT SELECT ON `shop`.`secret` TO/, 'with the grant');
is($postgres->psql(q{select count(*) from pg_stat_cdc_table where state = 'stopped'}), '1', 'and it alone');
$source->sql("grant select on *.* to '$user'\@'%'");
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.secret')});
is_equal('granted and copied anew');

# 7. a pipeline that failed because all its tables are stopped comes back
$pipeline->stop->drop->drop_target;
$pipeline->{tables} = '{shop.secret,shop.fresh}';
my $options = $pipeline->{options};
$pipeline->{options} = '{"schema_changes": "exception"}';
$pipeline->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$source->sql('truncate shop.secret', 'truncate shop.fresh');
$pipeline->wait_for_state('failed');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.*')});
like($postgres->{messages}, qr/Its state is "failed"/, 'a notice says when');
$source->sql('insert into shop.fresh values (100, 1)', 'insert into shop.secret values (100, 1)');
$pipeline->start;
is_equal('both are copied anew when it is started');
is($postgres->psql('select count(*) from shop.fresh'), '1', 'they hold what the source has');
$pipeline->{options} = $options;

# 8. the first run with a list that leaves tables out
$pipeline->stop->drop->drop_target;
$pipeline->{tables} = '{shop.*,!shop.hot_*,!shop.secret}';
$pipeline->start;
is_equal('a list that leaves tables out');
is(mirrored(), join(' ', sort('fresh', grep { !/^hot_/ } @tables)), 'they are left out');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();
