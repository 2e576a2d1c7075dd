# A dump that is restored brings pipelines, stopped, with owner, tables and the sequence of their numbers, and nothing of how far they were. A
# start then copies anew, and says so where rows are in the way; a position that is set before makes it go on with the restored rows.

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
	'create table shop.gone (id int primary key, v int)', 'create table shop.shape (id int primary key, v int)', 'insert into shop.shape values (1, 1)');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->stop;
$postgres->psql("create role ann superuser login; create user mapping for ann server shop options (username 'repl', password 'repl-secret'); select cdc_alter_pipeline('shop_in', owner => 'ann')");
my $position = $postgres->psql('select file || $$:$$ || "offset" from cdc_bridge.position');
my $gtids = $postgres->psql('select gtids from cdc_bridge.position');

# what happens after the dump
my $dump = $postgres->dir . '/dump.sql';
system($postgres->bindir . "/pg_dump -h '" . $postgres->host . "' -p " . $postgres->port . " -U postgres -d postgres > '$dump'") == 0 or die "pg_dump failed\n";
like(slurp($dump), qr/^1\tshop_in\tann\tshop\t/m, 'the dump names the owner');
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
	is($postgres->psql('select pipeline, owner, source, state, tables, applied_file from pg_stat_cdc_pipeline'), 'shop_in|ann|shop|stopped|3|', 'a restored pipeline is stopped, and has no position');
	is($postgres->psql("select count(*) from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = 'cdc_bridge' and relname like 'position\\_%'"), '0', 'nor position tables');
	for my $table (qw(pipeline_state table_state snapshot_chunk snapshot_deleted prepared_xid skipped_transaction))
	{
		is($postgres->psql("select count(*) from cdc_bridge.$table"), '0', "nothing of $table is restored");
	}
	is($postgres->psql("select count(*) from pg_stat_activity where datname = 'anew' and backend_type like 'cdc_bridge%'"), '0', 'no worker begins');
	$postgres->psql("select cdc_create_pipeline('another', source => 'shop', tables => '{shop.x}')");
	is($postgres->psql("select pipeline_id from pg_stat_cdc_pipeline where pipeline = 'another'"), '2', 'numbers go on');
	$postgres->psql("select cdc_drop_pipeline('another')");
	like($postgres->psql(q{select "check", status, detail from cdc_check_pipeline('shop_in') where "check" like 'table %'}), qr/\|warning\|.*came from a dump/, 'the check tells how it is');

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
	$postgres->psql("select cdc_start_pipeline('shop_in')");
	eval { $restored->wait_for_state('streaming')->wait_for_catchup; 1 } or diag($@);
	$restored->is_same("$name: it goes on with the restored rows", 't');
	is($restored->table_status('t', 'rows_copied'), '0', "$name: without a copy");
	is($restored->table_status('t', 'conflicts'), '0', "$name: nothing came twice");
	is($restored->table_status('gone', 'state'), 'stopped', "$name: a table that the source no longer has is stopped");
	like($restored->table_status('gone', 'last_error'), qr/does not exist any more/, "$name: with the reason");
	is($restored->table_status('shape', 'state'), 'stopped', "$name: a table of another shape is stopped");
	is($postgres->psql('select count(*) from shop.shape'), '1', "$name: and untouched");
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
