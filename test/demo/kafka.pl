# The demo of `make demo-kafka`: orders that are made, paid and now and then deleted, and what a reader of committed messages sees of them.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Kafka;
use CdcBridge::KafkaExport;
use CdcBridge::Postgres;
use Time::HiRes qw(time);

$| = 1;
my $seconds = $ENV{DEMO_SECONDS} || 15;
my $kafka = CdcBridge::Kafka->new;
my $postgres = CdcBridge::Postgres->new(conf => "wal_level = logical\n");
my $export = CdcBridge::KafkaExport->new(postgres => $postgres, kafka => $kafka, name => 'orders_out', tables => '{shop.orders}', options => '{"topic_partitions": 3}')->setup;
my $show = sub { my ($sql) = @_; print "postgres=# $sql\n"; $postgres->psql($sql); return; };

print "\nPostgreSQL and a Kafka ", $kafka->version, " broker (", $kafka->address, ") are running.\n\n";
$show->('create schema shop');
$show->('create table shop.orders (id int primary key, what text, price numeric(8,2), paid boolean not null default false)');
print "postgres=# create server events foreign data wrapper cdc_kafka options (bootstrap_servers '", $kafka->address, "');\n";
print "postgres=# select cdc_start_pipeline('orders_out', sink => 'events', tables => '{shop.orders}', options => '$export->{options}');\n";
$export->start->wait_for_state('streaming');
my @command = ('kcat', '-b', $kafka->address, '-C', '-q', '-u', '-t', 'shop.orders', '-X', 'isolation.level=read_committed', '-o', 'beginning');
print "\n\$ @command -f 'partition %p, key %k: %s'\n\n";
$show->("insert into shop.orders values (1, 'chair', 49.90)");
poll_until(sub { my %topics = $kafka->topics; return $topics{'shop.orders'} }) or die "the topic does not come\n";
my $reader = fork() // die "fork: $!\n";
if (!$reader) { exec('setpriv', '--pdeathsig', 'KILL', @command, '-f', "    partition %p, key %k: %s\n") or exit(127); }

my ($id, $until) = (1, time() + $seconds);
while (time() < $until)
{
	$id++;
	$show->("insert into shop.orders values ($id, '" . (qw(chair table lamp shelf))[ rand 4 ] . "', ${\ (5 + int(rand(200)))})");
	$show->('update shop.orders set paid = true where id = ' . ($id - 1));
	$show->('delete from shop.orders where id = ' . ($id - 3)) if $id % 4 == 0;
	poll_until(sub { return 0 }, 1.5);
}
$export->wait_for_all;
poll_until(sub { return 0 }, 1);
kill('TERM', $reader);
waitpid($reader, 0);
print "\n", $postgres->psql("select 'transactions ' || transactions || ', changes ' || changes || ', Kafka transactions ' || flushes || ', behind by ' || lag_bytes || ' bytes' from pg_stat_cdc_export"), "\n";
print "Each is there once, whatever is killed: docs/sinks/kafka.md. The servers end now, and nothing of them stays.\n";
