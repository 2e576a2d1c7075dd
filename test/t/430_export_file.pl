# Changes of tables of this database as lines in files: what is written, how the files are cut and found again, what is refused.
# cells: pg15 pg17 pg18

use strict;
use warnings;

use CdcBridge::Env qw(new_folder poll_until slurp);
use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres, server_options => ", file_max_kb '64'")->setup;

# ---- what is refused at once

my $refused = sub {
	my ($sql, $pattern, $name, @as) = @_;
	my $error = $postgres->psql_error($sql, @as);
	like($error, $pattern, $name) or diag($error);
};
$refused->("create server other foreign data wrapper cdc_file", qr/needs a directory/, 'a server without a directory');
$refused->("create server other foreign data wrapper cdc_file options (directory 'relative')", qr/absolute path/, 'a relative path');
$refused->("create server other foreign data wrapper cdc_file options (directory '" . $postgres->dir . "/data/x')", qr/outside of the data directory/, 'a path in the data directory');
$refused->("create server other foreign data wrapper cdc_null options (a 'b')", qr/Valid options are "write_format"|Valid options.*write_format/s, 'options of the sink that throws away');
$postgres->psql("create role user_of_it login; grant usage on foreign data wrapper cdc_file to user_of_it");
$refused->("create server other foreign data wrapper cdc_file options (directory '/tmp')", qr/42501|superuser/i, 'directories are for superusers', user => 'user_of_it');
$postgres->psql(<<'SQL');
create schema shop;
create table shop.t (id int primary key, name text, price numeric(10,2));
create table shop.log (what text);
SQL
$refused->("select cdc_start_pipeline('p', sink => 'files', tables => '{shop.*}')", qr/table shop\.log has no replica identity.*ALTER TABLE shop\.log REPLICA IDENTITY FULL/s, 'P4: a table whose changes do not tell which row they mean');
$postgres->psql('alter table shop.log replica identity full');
$refused->("select cdc_start_pipeline('p', sink => 'files', tables => '{shop.*}', target_schema => 'x')", qr/cannot have a target schema/, 'a target schema');
$refused->("select cdc_start_pipeline('p', sink => 'files', source => 'x', tables => '{shop.*}')", qr/both a source and a sink/, 'both sides');
$refused->("select cdc_start_pipeline('p', sink => 'files', tables => '{shop.*}', options => '{\"batch_max_ms\": 20}')", qr/unrecognized option|Valid options/, 'an option of incoming pipelines');
$refused->("select cdc_start_pipeline('p', sink => 'nowhere', tables => '{shop.*}')", qr/server "nowhere" does not exist/, 'a server that is not there');
$postgres->psql("grant usage on foreign server files to user_of_it; grant execute on function cdc_start_pipeline to user_of_it; grant usage on schema shop to user_of_it");
$refused->("select cdc_start_pipeline('p', sink => 'files', tables => '{shop.*}')", qr/permission denied for table.*GRANT SELECT ON/s, 'tables that the owner may not read', user => 'user_of_it');

# ---- what is written

$export->start->wait_for_state('streaming');
$postgres->psql(<<'SQL');
insert into shop.t values (1, 'one', 1.50), (2, 'two', 2.25);
update shop.t set price = 3 where id = 1;
begin; delete from shop.t where id = 2; insert into shop.log values ('in one'); commit;
SQL
$export->wait_for_all;
my @records = $export->records;
is(join(' ', map { "$_->{source}{table}:$_->{op}" } grep { $_->{op} } @records), 't:c t:c t:u t:d log:c', 'every change is there, in order');
my ($update) = grep { ($_->{op} // '') eq 'u' } @records;
is($update->{after}{id}, 1, 'the new row');
is($update->{after}{price}, '3.00', 'a numeric keeps its digits');
is_deeply([ $export->status('sink'), $export->status('slot_name') =~ /^cdc_\d+_\d+$/ ? 'named' : 'not' ], [ 'files', 'named' ], 'the view names sink and slot');
is($export->status('transactions'), 3, 'and counts transactions');
is($export->status('changes'), 5, 'and changes');
is($postgres->psql("select active from pg_replication_slots where plugin = 'cdc_bridge'"), 't', 'the slot is read');

# ---- what is incoming only

for my $call ("cdc_verify('shop_out')", "cdc_skip_transaction('shop_out')", "cdc_alter_pipeline('shop_out', target_schema => 'x')", "cdc_alter_pipeline('shop_out', source => 'x')")
{
	$refused->("select $call", qr/ships changes out of this database/, "$call says what it is for");
}
is($postgres->psql("select string_agg(\"check\" || ' ' || status, ', ') from cdc_check_pipeline('shop_out') where status <> 'ok'"), '', 'cdc_check_pipeline finds nothing to mend');

# ---- files are rotated, and a worker goes on in the newest

$postgres->psql("insert into shop.t select i, repeat('x', 200), i from generate_series(10, 1000) i");
$export->wait_for_all;
$postgres->psql("insert into shop.t select i, repeat('y', 200), i from generate_series(1001, 2000) i");
$export->wait_for_all;
cmp_ok(scalar($export->files), '>=', 2, 'another file when one has its size');
$export->stop;
$postgres->psql("update shop.t set name = 'while stopped' where id between 10 and 20");
$export->start->wait_for_state('streaming')->wait_for_all;
$export->is_replayed('shop', 't', 'id', 'stopped and started: nothing is missing, nothing is doubled');

# ---- the tail that a crash leaves: whatever of it reached the disk

for my $tail ('{"half', "{\"before\":null}\n", '{"cdc_bridge":{"end":"FF/FFFFFFFF","system":"1","slot":"x","from":0,"at":0,"crc32c":"00000000"}}' . "\n")
{
	$export->stop;
	my $last = ($export->files)[-1];
	open(my $out, '>>:raw', $last) or die "$last: $!";
	print $out $tail;
	close($out);
	$postgres->psql("update shop.t set price = price + 1 where id between 10 and 20");
	$export->start->wait_for_state('streaming')->wait_for_all;
	$export->is_replayed('shop', 't', 'id', 'what no end record stands behind is cut off: ' . substr($tail, 0, 12));
}

$export->stop;

# ---- the files are taken away, taken back, or another pipeline's

my $folder = $export->folder;
my @files = grep { -s $_ } $export->files;
rename($files[-1], "$export->{dir}/kept") or die "rename: $!";
$export->start->wait_for_state('failed');
is($export->status('last_error_sqlstate'), 'YC001', 'the newest file is gone: told');
like($export->status('last_error'), qr/older than it was|is lost|is empty/, 'and why');
rename("$export->{dir}/kept", $files[-1]) or die "rename: $!";
$export->start->wait_for_state('streaming')->wait_for_all;
unlink(@files[ 0 .. $#files - 1 ]);
$export->stop->start->wait_for_state('streaming')->wait_for_all;
pass('older files may be taken away');

# ---- dropped: the slot goes, not before the commit, and the files stay

$postgres->psql("begin; select cdc_drop_pipeline('shop_out'); rollback");
is($postgres->psql("select count(*) from pg_replication_slots where plugin = 'cdc_bridge'"), '1', 'a drop that is rolled back leaves the slot');
$export->wait_for_state('streaming')->drop;
ok($postgres->poll("select count(*) from pg_replication_slots where plugin = 'cdc_bridge'", '0'), 'a pipeline that is dropped leaves no slot behind');
ok(-s $files[-1], 'and its files stay');
$export->start->wait_for_state('failed');
like($export->status('last_error'), qr/holds what another pipeline has written/, 'another pipeline of the same name does not write into them');
$export->drop;

done_testing();
