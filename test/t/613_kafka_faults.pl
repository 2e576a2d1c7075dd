# When something is wrong with Kafka: rows that are too large, topics that are taken away, another writer under the same name, brokers that are away or stand
# still, a state that is gone; and a large transaction through a small queue in flat memory.
# cells: pg15
# needs: kafka

use strict;
use warnings;

use CdcBridge::Env qw(poll_until slurp);
use CdcBridge::Kafka;
use CdcBridge::KafkaExport;
use CdcBridge::Postgres;
use Test::More;

my $rows = $ENV{CDC_KAFKA_ROWS} // 150_000;
my $kafka = CdcBridge::Kafka->new;
my $postgres = CdcBridge::Postgres->new(conf => "wal_level = logical\nlogical_decoding_work_mem = 1MB\n");
my $export = CdcBridge::KafkaExport->new(postgres => $postgres, kafka => $kafka, server_options => ", request_timeout '2', queue_max_kb '1024'")->setup;
$postgres->psql('create schema shop; create table shop.t (id int primary key, v text); create table shop.other (id int primary key, v text); insert into shop.t values (0, null)');
$export->start->wait_for_state('streaming');

sub add { my ($id) = @_; $postgres->psql("insert into shop.t values ($id, 'v$id')"); return; }
sub ids { my ($topic) = @_; return join(' ', map { $_->{value}{after}{id} } grep { $_->{value} } $kafka->messages($topic)); }
sub kafka_tool { my ($log, @tool) = @_; return system('sh', '-c', 'exec "$@" >"$0" 2>&1', "$kafka->{dir}/$log", $kafka->java(@tool)) == 0; }

# ---- the broker stands still: the worker waits, and can be ended at any moment; what was committed meanwhile comes
$kafka->hold;
add(1);
$export->wait_for_status('last_error', qr/Kafka server "events"/);
like($export->status('last_error_sqlstate'), qr/^08/, 'P38, P47: brokers that do not answer are an error of the connection');
like($export->status('state'), qr/^(retrying|streaming)$/, '... and tried again');
is($export->status('confirmed_lsn') lt $postgres->psql('select pg_current_wal_lsn()') ? 'kept' : 'lost', 'kept', '... and the slot keeps the log');
poll_until(sub { return $export->status('pid') ne '' }) or die 'no worker comes';
my $pid = $export->status('pid');
my $began = time();
$postgres->psql("select pg_terminate_backend($pid)");
ok(poll_until(sub { return $export->status('pid') ne $pid }, 5), 'a worker that waits for a broker can be terminated');
$kafka->let_go;
$export->wait_for_all;
is(ids('shop.t'), '0 1', 'P38: nothing is missing, nothing comes twice');

# ---- another writer of the same transactional id: the older one is fenced off and writes nothing more
my $id = $postgres->psql("select 'cdc-' || system_identifier || '-' || (select oid from pg_database where datname = current_database()) || '-' || (select pipeline_id from pg_stat_cdc_export) from pg_control_system()");
open(my $thief, '|-', 'sh', '-c', 'exec "$@" >/dev/null 2>&1', 'sh', 'kcat', '-b', $kafka->address, '-P', '-t', 'shop.t', '-X', "transactional.id=$id") or die "kcat: $!";
print $thief qq({"op":"c","after":{"id":"stolen"},"source":{}}\n);
close($thief);
$postgres->psql("select pg_stat_reset()");
add(2);
ok(poll_until(sub { return $postgres->log_text =~ /Another process writes under transactional id "\Q$id\E"/ }), 'a worker that was fenced off says so');
like($postgres->log_text, qr/could not (?:commit|begin) a transaction of Kafka server|could not write to (?:a topic|topics) of Kafka server/, '... and ends');
$export->wait_for_all;
is(ids('shop.t'), '0 1 stolen 2', '... the next one goes on, once');

# ---- a row that is too large
$postgres->psql("alter table shop.other alter column v set storage external; insert into shop.other values (1, 'a')");
$postgres->psql("insert into shop.other values (2, repeat('x', 1100000)); insert into shop.t values (3, 'v3')");
$export->wait_for_status('tables_stopped', qr/^1$/)->wait_for_all;
is($postgres->psql("select table_name || ' ' || last_error_sqlstate from pg_stat_cdc_export_table where state = 'stopped'"), 'other 54000', 'P37: a row that no topic takes stops its table');
like($postgres->psql("select last_error || last_error_detail from pg_stat_cdc_export_table where state = 'stopped'"), qr/too large for topic "shop.other".*topic takes 1000000/s, '... and says why');
unlike($postgres->log_text, qr/xxxxxxxx/, '... without the row');
is(ids('shop.other'), '1', '... what came before it is there');
is(ids('shop.t'), '0 1 stolen 2 3', '... and other tables go on');
$postgres->psql("delete from shop.other where id = 2; select cdc_resync_table('shop_out', 'shop.other')");
ok(poll_until(sub { return $export->status('tables_stopped') eq '0' && $export->status('state') eq 'streaming' }), 'a copy brings it back when the row is gone');
$export->wait_for_all;
is_deeply([ map { $_->{value}{op} } $kafka->messages('shop.other') ], [qw(c t r)], '... which says that it begins anew');

# ---- a topic that is taken away is made again
ok(kafka_tool('delete.log', 'org.apache.kafka.tools.TopicCommand', '--bootstrap-server', $kafka->address, '--delete', '--topic', 'shop.t'), 'the topic is deleted')
  or diag(slurp("$kafka->{dir}/delete.log"));
poll_until(sub { my %topics = $kafka->topics; return !$topics{'shop.t'}; });
delete $kafka->{$_}{'shop.t'} for qw(messages);
delete $kafka->{at}{'shop.t 0'};
add(4);
$export->wait_for_all;
is(ids('shop.t'), '4', 'a topic that was taken away is there again, with what came since');

# ---- much more than the queue has
sub memory { my $pid = $export->status('pid'); return slurp("/proc/$pid/status") =~ /^VmHWM:\s+(\d+) kB/m ? $1 : 0; }
my $before = memory();
$postgres->psql("insert into shop.t select i, repeat(md5(i::text), 4) from generate_series(1000, 1000 + $rows - 1) i");
$export->wait_for_all(600);
my $grown = memory() - $before;
cmp_ok($grown, '<', 24 * 1024, "P38: $rows rows in one transaction need no more memory ($before kB, then $grown kB more)");
my ($end) = $kafka->_ends('read_committed', 'shop.t' => 1)->{'shop.t 0'};
cmp_ok($end, '>', $rows, '... and all are there');
$kafka->{at}{'shop.t 0'} = $end;

# ---- another writer has a transaction open in the state topic: what we committed behind it must not be overlooked
open(my $other, '|-', 'sh', '-c', 'exec "$@" >/dev/null 2>&1', 'sh', 'kcat', '-b', $kafka->address, '-P', '-t', 'cdc_bridge_state', '-K', ':', '-X', 'transactional.id=other', '-X', 'linger.ms=1') or die "kcat: $!";
{
	my $old = select($other);
	$| = 1;
	select($old);
}
my %state = ('cdc_bridge_state' => 1);
# kcat sends when it has read enough
print $other "other_out:{}\n" x 20000;
ok(poll_until(sub { return $kafka->_ends('read_uncommitted', %state)->{'cdc_bridge_state 0'} > $kafka->_ends('read_committed', %state)->{'cdc_bridge_state 0'} }), 'a transaction is open in the state topic');
my $number = 1000 + $rows;
add($number);
$export->wait_for_all;
$export->stop->start->wait_for_status('last_error', qr/what transactions leave open in a topic/);
like($export->status('last_error_sqlstate'), qr/^08/, 'the worker does not believe an older state, and tries again');
close($other);
add($number + 1);
$export->wait_for_all;
my @last = grep { $_->{value} && $_->{value}{after}{id} >= $number } $kafka->messages('shop.t');
is(join(' ', map { $_->{value}{after}{id} } @last), "$number " . ($number + 1), '... until it has seen its own');

# ---- the state is gone, or somebody else's
$export->stop;
system('sh', '-c', 'printf "shop_out:" | kcat -b "$0" -P -t cdc_bridge_state -K: -Z 2>/dev/null', $kafka->address) == 0 or die 'kcat';
$export->start->wait_for_state('failed');
is($export->status('last_error_sqlstate'), 'YC001', 'without its state a pipeline does not go on by guess');
like($export->status('last_error'), qr/sink of pipeline "shop_out" is empty/, '... and says so');
$export->drop;
system('sh', '-c', q(printf 'shop_out:{"lsn":"0/1","chunk":0,"system":"7","slot":"cdc_5_1","split_end":"0/0","split_lsn":"0/0"}' | kcat -b "$0" -P -t cdc_bridge_state -K: 2>/dev/null), $kafka->address) == 0 or die 'kcat';
$export->start->wait_for_state('failed');
like($export->status('last_error'), qr/holds what another pipeline has written/, 'the state of another server is not ours');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();
