# A dump that is restored brings pipelines, stopped, with owner, tables and the sequence of their numbers, and nothing of how far they were. A
# start then copies anew, and says so where rows are in the way; a position that is set before makes it go on with the restored rows, of the
# tables that were complete when the dump was taken: those that were stopped or being copied stay stopped until they are copied anew.

use strict;
use warnings;

use CdcBridge::Env qw(slurp);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.t (id int primary key, v int)', 'insert into shop.t values (1, 1), (2, 2)',
	'create table shop.gone (id int primary key, v int)', 'create table shop.shape (id int primary key, v int)', 'insert into shop.shape values (1, 1)',
	map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, 1), (2, 2)") } qw(halted resynced));
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"schema_changes": "exception"}')->setup->start;
sub is_noted
{
	my ($name, $complete) = @_;
	is($postgres->psql("select string_agg(source_table, ',' order by source_table) from cdc_bridge.pipeline_table where complete"), $complete, "$name: a dump would have them as complete");
	is($postgres->psql("select count(*) from cdc_bridge.pipeline_table join cdc_bridge.table_state using (pipeline_id, table_id) where complete <> (state = 'streaming')"), '0', "$name: which is what their states say");
	return;
}
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
is_noted('all are copied', 'gone,halted,resynced,shape,t');

# one table is stopped and lacks what came after; its shape is as before
$source->sql('alter table shop.halted add w int', 'insert into shop.halted values (3, 3, 3)');
$pipeline->wait_for_table_state('halted', 'stopped');
$source->sql('alter table shop.halted drop w', 'update shop.halted set v = 10 where id = 1');

# another is being copied anew, and its readers still see the old rows: a session keeps the copy from taking their place
open(my $reader, '|-', "$postgres->{bindir}/psql -XAtq -h $postgres->{dir} -p $postgres->{port} -U postgres -d postgres >/dev/null 2>&1") or die "psql: $!";
$reader->autoflush(1);
print $reader "begin; select count(*) from shop.resynced;\n";
$postgres->poll("select count(*) from pg_stat_activity where state = 'idle in transaction' and query like '%from shop.resynced%'", '1') or die "the session did not get its lock\n";
$postgres->psql("select cdc_resync_table('shop_in', 'shop.resynced')");
ok($postgres->poll(q{select count(*) from pg_class where relname like 'cdc\_resync%' and relkind = 'r'}, '1', 60), 'a new copy is on its way');
$source->sql('update shop.resynced set v = 10 where id = 1', 'delete from shop.resynced where id = 2');
$pipeline->wait_for_catchup;
is_noted('one is stopped, one is being copied', 'gone,shape,t');
$pipeline->stop;
$postgres->psql("create role ann superuser login; create user mapping for ann server shop options (username 'repl', password 'repl-secret'); select cdc_alter_pipeline('shop_in', owner => 'ann')");
my $position = $postgres->psql('select file || $$:$$ || "offset" from cdc_bridge.position');
my $gtids = $postgres->psql('select gtids from cdc_bridge.position');

my $dump = $postgres->dir . '/dump.sql';
system($postgres->bindir . "/pg_dump -h '" . $postgres->host . "' -p " . $postgres->port . " -U postgres -d postgres > '$dump'") == 0 or die "pg_dump failed\n";
like(slurp($dump), qr/^1\tshop_in\tann\tshop\t/m, 'the dump names the owner');
print $reader "commit;\n";
close($reader);

# what happens after the dump
$source->sql('insert into shop.t values (3, 3)', 'update shop.t set v = 20 where id = 2', 'delete from shop.t where id = 1', 'drop table shop.gone',
	'insert into shop.shape values (2, 2)', 'alter table shop.shape add w int');

sub restore
{
	my ($name) = @_;
	$postgres->psql("create database $name");
	system($postgres->bindir . "/psql -qX -v ON_ERROR_STOP=1 -h '" . $postgres->host . "' -p " . $postgres->port . " -U postgres -d $name -f '$dump' > '" . $postgres->dir . "/restore.log' 2>&1") == 0
	  or die "the dump cannot be restored: " . `cat '@{[$postgres->dir]}/restore.log'`;
}

# ---- what a restored database has
restore('anew');
{
	local $postgres->{database} = 'anew';
	my $restored = CdcBridge::Pipeline->new(source => $source, postgres => $postgres);
	is($postgres->psql('select pipeline, owner, source, state, tables, applied_file from pg_stat_cdc_pipeline'), 'shop_in|ann|shop|stopped|5|', 'a restored pipeline is stopped, and has no position');
	is($postgres->psql("select count(*) from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = 'cdc_bridge' and relname like 'position\\_%'"), '0', 'nor position tables');
	for my $table (qw(pipeline_state table_state snapshot_chunk snapshot_deleted prepared_transaction prepared_change skipped_transaction))
	{
		is($postgres->psql("select count(*) from cdc_bridge.$table"), '0', "nothing of $table is restored");
	}
	is($postgres->psql("select count(*) from pg_stat_activity where datname = 'anew' and backend_type like 'cdc_bridge%'"), '0', 'no worker begins');
	$postgres->psql("select cdc_create_pipeline('another', source => 'shop', tables => '{shop.x}')");
	is($postgres->psql("select pipeline_id from pg_stat_cdc_pipeline where pipeline = 'another'"), '2', 'numbers go on');
	$postgres->psql("select cdc_drop_pipeline('another')");
	like($postgres->psql(q{select "check", status, detail from cdc_check_pipeline('shop_in') where "check" like 'table %'}), qr/\|warning\|.*came from a dump/, 'the check tells how it is');
	like($postgres->psql(q{select hint from cdc_check_pipeline('shop_in') where "check" = 'table shop.t'}), qr/cdc_set_position\(\).*drop or empty the target table/, 'and both ways on');

	# a start without a position copies anew, and meets the rows
	$postgres->psql("select cdc_start_pipeline('shop_in')");
	$restored->wait_for_table_state('t', 'stopped');
	like($restored->table_status('t', 'last_error'), qr/exists and has rows/, 'a start without a position does not touch restored rows');
	like($restored->table_status('t', 'last_error_hint'), qr/Drop or empty the table/, 'and says what to do');
	is($postgres->psql('select count(*) from shop.t'), '2', 'they are as they were');
	$postgres->psql("select cdc_drop_pipeline('shop_in'); drop schema shop cascade");
	$restored->start;
	$restored->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	$restored->is_same('dropped and begun anew it mirrors', qw(t shape));
	$restored->stop->drop;
}

# ---- going on with the restored rows
sub goes_on
{
	my ($name, $how) = @_;
	restore($name);
	local $postgres->{database} = $name;
	my $restored = CdcBridge::Pipeline->new(source => $source, postgres => $postgres);
	$postgres->psql("select cdc_set_position('shop_in', $how)");
	like($postgres->{messages}, qr/taken to hold what the source had at that position/, "$name: a notice says what it means");
	is($restored->state, 'stopped', "$name: it is still stopped");
	like($postgres->psql(q{select status, detail, hint from cdc_check_pipeline('shop_in') where "check" = 'table shop.t'}), qr/^warning\|.*taken to be those of the position.*cdc_start_pipeline/, "$name: the check tells what a start does");
	like($postgres->psql(q{select status, detail, hint from cdc_check_pipeline('shop_in') where "check" = 'table shop.halted'}), qr/^error\|.*not complete when the dump was taken.*cdc_resync_table/, "$name: and with a table that was not complete");
	$postgres->psql("select cdc_start_pipeline('shop_in')");
	eval { $restored->wait_for_state('streaming')->wait_for_catchup; 1 } or diag($@);
	$restored->is_same("$name: it goes on with the restored rows", 't');
	is($restored->table_status('t', 'rows_copied'), '0', "$name: without a copy");
	is($restored->table_status('t', 'conflicts'), '0', "$name: nothing came twice");
	is($restored->table_status('gone', 'state'), 'stopped', "$name: a table that the source no longer has is stopped");
	like($restored->table_status('gone', 'last_error'), qr/does not exist any more/, "$name: with the reason");
	is($restored->table_status('shape', 'state'), 'stopped', "$name: a table of another shape is stopped");
	is($postgres->psql('select count(*) from shop.shape'), '1', "$name: and untouched");
	for my $table (qw(halted resynced))
	{
		is($restored->table_status($table, 'state'), 'stopped', "$name: $table, which was not complete in the dump, is stopped");
		like($restored->table_status($table, 'last_error'), qr/was not complete when the dump was taken/, "$name: with the reason");
		like($restored->table_status($table, 'last_error_hint'), qr/cdc_resync_table/, "$name: and what to do");
	}
	is_noted("$name: restored", 't');
	is($postgres->psql(q{select count(*) from pg_class c where relkind = 'r' and relname ~ '^cdc_resync_[0-9]+$' and not exists (select from cdc_bridge.table_state where swap_into <> 0 and target = c.oid)}),
		'1', "$name: the dump brought a half-made copy, which can be found");
	$postgres->psql("select cdc_resync_table('shop_in', 'shop.' || t) from unnest('{halted,resynced}'::text[]) t");
	for my $table (qw(halted resynced))
	{
		eval { $restored->wait_for_table_state($table, 'streaming'); 1 } or diag($@);
	}
	$restored->wait_for_catchup;
	$restored->is_same("$name: a new copy mends them", qw(halted resynced));
	is_noted("$name: mended", 'halted,resynced,t');
	like($postgres->psql('select identity from cdc_bridge.position'), qr/./, "$name: the position belongs to the source now");
	$source->sql('insert into shop.t values (' . (10 + length($name)) . ', 1)');
	$restored->wait_for_catchup;
	$restored->is_same("$name: and on", 't');
	$restored->stop->drop;
}

goes_on('by_file', "at => '$position'");
goes_on('by_gtids', "gtids => '$gtids'");

# ---- GTIDs of the other family
restore('other_family');
{
	local $postgres->{database} = 'other_family';
	my $restored = CdcBridge::Pipeline->new(source => $source, postgres => $postgres);
	my $strange = $source->is_mysql ? '0-1-5' : '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5';
	$postgres->psql("select cdc_set_position('shop_in', gtids => '$strange'); select cdc_start_pipeline('shop_in')");
	$restored->wait_for_state('failed');
	like($restored->status('last_error'), qr/does not write GTIDs like those/, 'GTIDs of the other family are refused when the source is known');
	$restored->stop->drop;
}

done_testing();
