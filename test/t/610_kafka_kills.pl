# Random transactions - subtransactions that are rolled back, large ones that are split over Kafka transactions, DDL in between, TOAST - while worker,
# postmaster and broker are killed at random moments: who reads committed messages of three partitions a topic sees every committed change once, and in
# order for each key. CDC_TEST_ROUNDS (default 20) and CDC_SEED choose; the seed is printed.
# cells: pg15
# needs: kafka
# takes: 190 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::ExportRounds;
use CdcBridge::Kafka;
use CdcBridge::KafkaExport;
use CdcBridge::Postgres;
use Test::More;

my $rounds = CdcBridge::ExportRounds->new;
my $kafka = CdcBridge::Kafka->new;
diag('Kafka ' . $kafka->version);
my $postgres = CdcBridge::Postgres->new(conf => "logical_decoding_work_mem = 64kB\n");
# small transactions, so that many are split; short waits, so that a broker that is away ends the worker now and then
my $export = CdcBridge::KafkaExport->new(postgres => $postgres, kafka => $kafka, options => '{"topic_partitions": 3}',
	server_options => ", transaction_max_kb '64', request_timeout '2'")->setup;
$rounds->make_tables($postgres);
$export->start->wait_for_state('streaming');
my $end_broker = sub {
	my ($writers) = @_;
	$kafka->kill9;
	$writers->kill_all;
	poll_until(sub { return 0 }, rand(3)) if rand() < 0.3;
	$kafka->start;
	return '';
};
# the message of a new key cannot have a large value that is not in the log
$rounds->run(postgres => $postgres, export => $export, cases => 'P12, P17, P38', again => 610, victims => { broker => $end_broker }, touches_large => 1);
my %topics = $kafka->topics;
is_deeply([ @topics{ 'shop.item', 'shop.event', 'shop.wide', 'cdc_bridge_state' } ], [ 3, 3, 3, 1 ], 'topics have the partitions that were asked for');
my @states = $kafka->messages('cdc_bridge_state');
my ($last, $back, $split) = (0, 0, 0);
for my $state (map { $_->{value} } @states)
{
	my ($high, $low) = split(/\//, $state->{lsn});
	my $lsn = hex($high) * 2**32 + hex($low);
	$back++ if $lsn < $last;
	$last = $lsn;
	$split++ if $state->{split_end} ne '0/0';
}
is($back, 0, 'P13: positions never step back');
cmp_ok($split, '>', 0, "transactions were split ($split times)");
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();
