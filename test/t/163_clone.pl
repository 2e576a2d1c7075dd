# A copy of a server's data directory, started beside the original: both follow the source, neither drives the other away, and the copy says
# that it moved. With autostart off the copy waits.

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.t (id int primary key, v int)', 'insert into shop.t values (1, 1), (2, 2)');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
my $fingerprint = $postgres->psql('select fingerprint from cdc_bridge.pipeline_state');
like($fingerprint, qr{^\d+/1/.*:\Q$postgres->{dir}\E/data$}, 'where it runs is written down');

# the copy: another folder of this machine, started as another cluster
$postgres->stop;
my $copy = CdcBridge::Postgres->new;
$copy->stop;
system('rm', '-rf', "$copy->{dir}/data") == 0 && system('cp', '-a', "$postgres->{dir}/data", "$copy->{dir}/data") == 0 or die "the data directory cannot be copied\n";
$copy->append_conf("port = $copy->{port}\nunix_socket_directories = '$copy->{dir}'");
unlink("$copy->{dir}/log");
$copy->append_conf('cdc_bridge.autostart = off');
$postgres->start;
$copy->start;
is($copy->psql('select system_identifier from pg_control_system()'), $postgres->psql('select system_identifier from pg_control_system()'), 'two servers with one system identifier');

my $clone = CdcBridge::Pipeline->new(source => $source, postgres => $copy, created => 1);
$pipeline->wait_for_state('streaming');
is($clone->state, 'waiting', 'with autostart off the copy waits');
is($copy->psql("select count(*) from pg_stat_activity where backend_type = 'cdc_bridge ingest worker'"), '0', 'and asks the source for nothing');
$copy->psql("select cdc_start_pipeline('shop_in', confirm_move => true)");
$clone->wait_for_state('streaming');
my @pids = map { $_->status('ingest_pid') } $pipeline, $clone;
for my $round (1 .. 5)
{
	$source->sql("insert into shop.t values (10 + $round, $round)", "update shop.t set v = v + 1");
	$pipeline->wait_for_catchup;
	$clone->wait_for_catchup;
}
$pipeline->is_same('the original follows');
$clone->is_same('and the copy does');
is(join(',', map { $_->status('ingest_pid') } $pipeline, $clone), join(',', @pids), 'neither drove the other away');
is($_->status('failures'), '0', 'no failure') for $pipeline, $clone;
is(scalar(grep { $_->[4] =~ /^Binlog Dump/ } $source->query_rows('show processlist')), 2, 'the source sends its log to both');
like($copy->log_text, qr/pipeline "shop_in" goes on under another server than before/, 'the copy logs that it moved');
unlike($postgres->log_text, qr/goes on under another server/, 'the original has nothing to log');
isnt($copy->psql('select fingerprint from cdc_bridge.pipeline_state'), $fingerprint, 'and notes where it runs now');

done_testing();
