# The mark of a table without a key, arranged: a transaction that is in the log and that no SELECT shows yet, a row that is deleted while the
# copy is on its way, and an ingest worker that is gone when the mark is written.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::FakeServer;
use CdcBridge::HeldCommit;
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use Test::More;

my $source = CdcBridge::HeldCommit->source;
my $postgres = CdcBridge::Postgres->new;
my $proxy = CdcBridge::FakeServer->new(upstream => $source);
$source->sql('create database shop', 'create table shop.other (id int primary key)', 'create table shop.note (a int, b int)',
	sprintf("grant lock tables on shop.* to '%s'\@'%%'", $source->user));
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { port => $proxy->port }, tables => '{shop.other}')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;

sub fill { $source->sql('delete from shop.note', 'insert into shop.note values ' . join(', ', map { "($_, 0), ($_, 0)" } 1 .. 30)); return; }
sub add { fill(); $pipeline->wait_for_catchup; $postgres->psql(q{select cdc_add_table('shop_in', 'shop.note')}); return; }
sub is_equal
{
	my ($name) = @_;
	$pipeline->wait_for_table_state('note', 'streaming')->wait_for_catchup;
	is($postgres->psql('select a, b from shop.note order by 1, 2'), join("\n", map { join('|', @$_) } $source->query_rows('select a, b from shop.note order by 1, 2')), $name);
	is($pipeline->table_status('note', 'conflicts'), '0', 'no row was missing');
	return;
}
sub leave
{
	$postgres->psql(q{select cdc_remove_table('shop_in', 'shop.note')});
	$postgres->poll('select tables_asked = tables_done from cdc_bridge.pipeline_state') or die "the table does not leave\n";
	$postgres->psql('drop table shop.note');
	return;
}

# ---- 1. no mark while a transaction that changes the table is in the log and not visible; what the stream brings meanwhile is in the copy
fill();
my $held = CdcBridge::HeldCommit->new($source, 'insert into shop.note values (100, 1)', 'delete from shop.note where a = 5 limit 1', 'update shop.note set b = 2 where a = 6 limit 1');
$pipeline->wait_for_catchup;
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.note')});
ok(!poll_until(sub { return $pipeline->table_status('note', 'state') eq 'streaming' }, 4), 'a transaction that cannot be seen yet: the table waits');
$held->release;
is_equal('a copy that has it');
leave();

# ---- 2. rows that the stream takes away before the copy brings them
$proxy->hold('^SELECT `a`, `b` FROM `shop`\.`note`$');
add();
$proxy->wait_until_held;
$source->sql('delete from shop.note where a < 5', 'delete from shop.note where a = 6 limit 1', 'update shop.note set b = 3 where a = 7', 'insert into shop.note values (9, 0)');
$pipeline->wait_for_catchup;
is($postgres->psql('select count(*) from cdc_bridge.snapshot_deleted where length(key) > 1'), '11', 'are noted, equal ones too');
$proxy->let_go;
is_equal('are taken away when the copy has brought them');
leave();

# ---- 3. a mark that was read while another process held still does not count: the one that took its place has passed changes over
$proxy->hold('START TRANSACTION WITH CONSISTENT SNAPSHOT');
add();
$proxy->wait_until_held;
$proxy->hold('information_schema.columns')->wait_until_held;    # the snapshot is open, the mark not yet written
$source->sql('insert into shop.note values (200, 1)', 'delete from shop.note where a = 5');
my $ingest = q{select pid from pg_stat_activity where backend_type = 'cdc_bridge ingest worker'};
my $pid = $postgres->psql($ingest);
$postgres->psql("select pg_terminate_backend($pid)");
ok($postgres->poll("select count(*) from ($ingest) as now where pid <> $pid", '1'), 'another ingest worker');
$source->sql('insert into shop.note values (201, 1)');
$proxy->let_go;
is_equal('nothing of what it passed over is lost');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
