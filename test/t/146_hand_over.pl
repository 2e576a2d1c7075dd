# When a table is handed over to the stream, and what a page that comes late meets: the ledger says that it is somebody else's or done, its
# table is stopped, the copy was begun anew, another server answers. A proxy holds back a page, or the binary log.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::FakeServer;
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $proxy = CdcBridge::FakeServer->new(upstream => $source);
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { port => $proxy->port },
	options => '{"snapshot_workers": 1, "schema_changes": "exception"}')->setup;

# the query for the rows of "main", and the one for the end of a chunk, which asks for the key alone
my $rows_of_main = '`v`.* FROM `shop`\.`main`';
my $end_of_main = '^SELECT [^v]* FROM `shop`\.`main`';

$source->sql('create database shop', 'create table shop.main (id int primary key, v int)');
sub begin
{
	my ($hold) = @_;
	$source->sql('delete from shop.main', 'insert into shop.main values ' . join(', ', map { '(' . $_ * 10 . ', 0)' } 1 .. 30));
	$proxy->hold($hold);
	$pipeline->start;
	$proxy->wait_until_held;
	return;
}
sub wait_until_done { return $pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup; }
sub end { return $pipeline->stop->drop->drop_target; }

# ---- 1. the stream is behind what a chunk has seen: until it has come there, the table is not handed over
begin("binary log dump|$end_of_main");
$source->sql('insert into shop.main values (155, 1)', 'update shop.main set id = 161 where id = 160', 'delete from shop.main where id = 200', 'insert into shop.main values (200, 7)');
$proxy->hold('binary log dump');
ok(poll_until(sub { return $pipeline->table_status('main', 'state') =~ /^(catchup|streaming)$/ }), 'all chunks are written');
is($postgres->psql('select count(*) from shop.main where id in (155, 161)'), '2', 'the copy has seen what the stream has not');
ok(!poll_until(sub { return $pipeline->table_status('main', 'state') ne 'catchup' }, 2), 'the table waits for the stream');
$proxy->let_go;
wait_until_done();
is($pipeline->table_status('main', 'conflicts'), '0', 'nothing that comes again is a conflict');
is($postgres->psql('select count(*) from cdc_bridge.snapshot_deleted'), '0', 'no note is left');
$pipeline->is_same('handed over');
end();

# ---- 2. a chunk that the ledger says is done is not written again
begin($rows_of_main);
my $of_main = q{where (pipeline_id, table_id) in (select pipeline_id, table_id from cdc_bridge.pipeline_table where source_table = 'main')};
$postgres->psql("update cdc_bridge.snapshot_chunk set state = 'done' $of_main");
$proxy->let_go;
wait_until_done();
is($postgres->psql('select count(*) from shop.main'), '0', 'a page whose chunk is done is not written');
end();

# ---- 3. nor one that belongs to another worker: it is read again by who takes it over
begin($rows_of_main);
$postgres->psql("update cdc_bridge.snapshot_chunk set worker = 77 $of_main");
$proxy->hold($rows_of_main)->wait_until_held;
is($postgres->psql('select count(*) from shop.main'), '0', 'a page of a chunk that is not ours is not written');
is($postgres->psql("select worker from cdc_bridge.snapshot_chunk $of_main"), '1', 'the chunk was taken over, for nobody had it');
$proxy->let_go;
wait_until_done();
$pipeline->is_same('read by who took it over');
end();

# ---- 4. nor one of a table that stopped
begin($rows_of_main);
$source->sql('alter table shop.main add column w int');
$pipeline->wait_for_table_state('main', 'stopped');
$proxy->let_go;
ok($postgres->poll(q{select count(*) from pg_stat_activity where backend_type = 'cdc_bridge snapshot worker'}, '0'), 'the worker has nothing more to do');
is($postgres->psql('select count(*) from shop.main'), '0', 'a page of a stopped table is not written');
$source->sql('alter table shop.main drop column w');
end();

# ---- 5. what fails while a former copy's page is written does not stop the new copy
begin($rows_of_main);
$source->sql('update shop.main set v = 5');
$pipeline->wait_for_catchup;
$source->sql('update shop.main set v = 1');
$pipeline->wait_for_catchup;
$postgres->psql('truncate shop.main; alter table shop.main add check (v > 0); delete from cdc_bridge.snapshot_deleted');
open(my $session, '|-', "$postgres->{bindir}/psql", '-qXAt', '-o', '/dev/null', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', 'postgres') or die "psql: $!";
$session->autoflush(1);
print $session "begin; lock table shop.main in share mode;\n";
$postgres->poll(q{select count(*) from pg_locks where relation = 'shop.main'::regclass and mode = 'ShareLock' and granted}, '1') or die 'no lock';
sub waits { my ($kind, $what) = @_; return $postgres->poll("select count(*) from pg_locks join pg_stat_activity using (pid) where not granted and backend_type = 'cdc_bridge $kind worker' and $what", '1', 20); }
$proxy->let_go;
ok(waits('snapshot', q{relation = 'shop.main'::regclass}), 'the page is being written');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.main')});
ok(waits('ingest', q{locktype = 'advisory'}), 'a new copy waits for that');
print $session "commit;\n";
close($session);
wait_until_done();
is($pipeline->table_status('main', 'state'), 'streaming', 'the new copy goes on') or diag($pipeline->describe);
$pipeline->is_same('and it is equal');

# ---- 6. another server answers: neither does a table join from there, nor is a page read
my $other = CdcBridge::Source->new(args => ['--server-id=99']);
$other->sql('create database shop', 'create table shop.main (id int primary key, v int)', 'insert into shop.main values (1, 99), (10, 99)');
my $generation;
sub resync { $generation = $postgres->psql('select generation from cdc_bridge.table_state'); $postgres->psql(q{select cdc_resync_table('shop_in', 'shop.main')}); return; }
sub is_refused
{
	my ($who, $who_says, $taken_up) = @_;
	ok(poll_until(sub { return $postgres->log_text =~ /$who_says.*source server "shop" is not the server that is followed/ }), "$who looks which server it is") or diag($pipeline->describe);
	is($postgres->psql("select generation > $generation from cdc_bridge.table_state"), $taken_up, 'the new copy was begun: ' . $taken_up);
	$proxy->lead_to($source);
	$pipeline->start;
	wait_until_done();
	$pipeline->is_same('and comes back to the right one');
	return;
}
$proxy->lead_to($other);
resync();
is_refused('who lets a table join', 'ingest worker', 'f');
# held when the session for that stands: the next one is that of the copy
$proxy->hold('information_schema.columns');
resync();
$proxy->wait_until_held->lead_to($other)->let_go;
is_refused('who copies', 'snapshot worker', 't');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
