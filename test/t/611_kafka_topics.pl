# What stands in topics: names, keys and partitions, tombstones, updates of keys, headers, compression, what is not a row; Kafka's own console consumer
# reads it, too. And docs/sinks/kafka.md: its example, and its options.
# cells: pg18
# needs: kafka

use strict;
use warnings;

use CdcBridge::Env qw(slurp tree);
use CdcBridge::Kafka;
use CdcBridge::KafkaExport;
use CdcBridge::Postgres;
use JSON::PP ();
use Test::More;

my $kafka = CdcBridge::Kafka->new;
my $postgres = CdcBridge::Postgres->new(conf => "wal_level = logical\n");
my $docs = slurp(tree() . '/docs/sinks/kafka.md');

# ---- the example
my ($example) = $docs =~ /^```sql\n(.*?)^```/ms;
my $conf = $postgres->psql("select current_setting('output_plugin_libraries', true)");
if ($conf ne '')
{
	$postgres->psql("alter system set output_plugin_libraries = $conf, cdc_bridge");
	$postgres->psql('select pg_reload_conf()');
	$postgres->poll('show output_plugin_libraries', qr/cdc_bridge/) or die "the list of output plugins does not change\n";
}
my $address = $kafka->address;
$postgres->psql($example =~ s/127\.0\.0\.1:9092/$address/r);
my $item = CdcBridge::KafkaExport->new(postgres => $postgres, kafka => $kafka, name => 'item_out', created => 1);
$item->wait_for_all;
my ($chair) = $kafka->messages('shop.item');
is($chair->{key}, '{"id":1}', 'the example: the key');
is($chair->{value}{after}{name}, 'chair', '... and the value');
is({ $kafka->topics }->{'shop.item'}, 3, '... and the partitions');
$item->drop;

# ---- options as the text tells them
my %described = map { my @c = map { s/^\s+|\s+$//gr } split(/(?<!\\)\|/, $_); map { ($_ => [ @c[ 2, 3 ] ]) } $c[1] =~ /`(\w+)`/g } $docs =~ /^(\| `\w.*)$/mg;
for my $line (split(/\n/, $postgres->psql(q{select kind, name, coalesce("default", ''), coalesce(allowed, '') from cdc_list_options()
	where subject = 'cdc_kafka' and kind = 'server' or subject = 'outgoing' and description like 'sink cdc_kafka%'})))
{
	my ($kind, $name, $default, $allowed) = split(/\|/, $line, -1);
	my $told = $described{$name} or fail("$kind option $name is told"), next;
	is($told->[0] =~ s/`//gr, $default ne '' ? $default : ($name eq 'bootstrap_servers' ? 'required' : ''), "option $name: its default is told");
	like($told->[1], qr/^\Q${\ ($allowed =~ s{\.\.}{ to }r)}\E/, "option $name: what is allowed is told") if $kind eq 'server' && $allowed ne '';
}

# ---- keys, tombstones, headers, names
$postgres->psql(<<'SQL');
create schema other;
create table other.pair (a int, b text, v int, primary key (b, a));
create table other.nokey (v int);
alter table other.nokey replica identity full;
create table other."Bl ü" (id int primary key);
create table other."Bl ö" (id int primary key);
create table other.large (id int primary key, v text, big text);
alter table other.large alter column big set storage external;
SQL
my $export = CdcBridge::KafkaExport->new(postgres => $postgres, kafka => $kafka, name => 'other_out', server => 'zipped', tables => '{other.*}', server_options => ", compression 'zstd'",
	options => '{"topic_partitions": 4, "headers": true, "messages": true, "include_transaction": true, "topic": "x.{table}", "snapshot": "never"}')->setup->start->wait_for_state('streaming');
$postgres->psql(<<'SQL');
insert into other.pair select i % 5, 'k' || i, i from generate_series(1, 40) i;
update other.pair set v = v + 100;
delete from other.pair where a = 3 and b = 'k3';
update other.pair set b = 'moved' where b = 'k4';
insert into other.nokey values (1), (2);
update other.nokey set v = 3 where v = 1;
insert into other."Bl ü" values (1);
insert into other."Bl ö" values (2);
insert into other.large values (1, 'a', repeat(md5('1'), 100));
update other.large set v = 'b';
alter table other.pair add column extra int;
select pg_logical_emit_message(true, 'note', 'hello');
truncate other.nokey;
SQL
$export->wait_for_all;
my @pair = $kafka->messages('x.pair');
my %partitions_of;
$partitions_of{ $_->{key} }{ $_->{partition} } = 1 for @pair;
is_deeply([ grep { keys %$_ > 1 } values %partitions_of ], [], 'all messages of a key are in one partition');
cmp_ok(scalar(keys %{ { map { $_->{partition} => 1 } @pair } }), '>', 1, '... and not all keys in the same');
my ($k1) = grep { $_->{key} eq '{"b":"k1","a":1}' } @pair;
ok($k1, 'a key of two columns, in the order of the primary key') or diag(map { "$_->{key}\n" } @pair);
# the order of the records of a key
my %last;
my $disorder = 0;
for (grep { $_->{value} && $_->{value}{op} ne 'd' } @pair) { $disorder++ if ($last{ $_->{key} } // '') gt $_->{value}{source}{lsn}; $last{ $_->{key} } = sprintf('%20d', $_->{value}{source}{lsn}); }
is($disorder, 0, 'what happens to a row comes in order');
my @gone = grep { $_->{key} eq '{"b":"k3","a":3}' } @pair;
is_deeply([ map { $_->{value} ? $_->{value}{op} : 'tombstone' } @gone ], [qw(c u d tombstone)], 'P36: a tombstone behind a delete');
my @moved = grep { $_->{key} =~ /"k4"|moved/ } @pair;
is_deeply([ sort map { ($_->{key} =~ /moved/ ? 'new ' : 'old ') . ($_->{value} ? $_->{value}{op} : 'tombstone') } @moved ], [ 'new c', 'old c', 'old d', 'old tombstone', 'old u' ],
	'an update of the key deletes the old one');
my ($born) = grep { $_->{key} =~ /moved/ } @moved;
my ($dead) = grep { $_->{value} && $_->{value}{op} eq 'd' } @moved;
is($born->{headers}{'__debezium.oldkey'}, '{"b":"k4","a":4}', '... the new one tells the old one');
is($dead->{headers}{'__debezium.newkey'}, '{"b":"moved","a":4}', '... and the other way round');
is_deeply([ @{ $k1->{headers} }{qw(cdc.operation cdc.table)} ], [qw(insert other.pair)], 'headers tell operation and table');
like($k1->{headers}{'cdc.position'}, qr{^[0-9A-F]+/[0-9A-F]+$}, '... and position');
my @nokey = $kafka->messages('x.nokey');
is_deeply([ map { $_->{key} } @nokey ], [ (undef) x 4 ], 'a table without a key has none');
is(scalar(keys %{ { map { $_->{partition} => 1 } @nokey } }), 1, '... and one partition');
is_deeply([ map { $_->{value}{op} } @nokey ], [qw(c c u t)], '... in order, TRUNCATE too');
my ($large) = grep { $_->{value}{op} eq 'u' } $kafka->messages('x.large');
is($large->{value}{after}{big}, '__debezium_unavailable_value', 'a large value that was not touched is not known');
my %topics = $kafka->topics;
my @odd = grep { /^x\.Bl_/ } sort keys %topics;
is(scalar(@odd), 2, 'P33, P34: names that differ in what topics cannot have do not meet') or diag(join(' ', sort keys %topics));
like($_, qr/^x\.Bl____[0-9a-f]{8}$/, "... $_") for @odd;
is(scalar($kafka->messages($_)), 1, '... and each has its rows') for @odd;

# ---- what is not a row
my $database = 'postgres';
my @schema = $kafka->messages("$database.schema_changes");
is_deeply([ map { "$_->{value}{tableChanges}[0]{type} $_->{value}{tableChanges}[0]{id}" =~ s/"//gr } @schema ], ['ALTER postgres.other.pair'], 'schema changes have a topic of their own')
  or diag(map { "$_->{text}\n" } @schema);
my @message = $kafka->messages("$database.message");
is($message[0]{value}{message}{prefix}, 'note', 'messages too') or diag(map { "$_->{text}\n" } @message);
my @transaction = $kafka->messages("$database.transaction");
is_deeply([ map { $_->{value}{status} } @transaction[ 0, 1 ] ], [qw(BEGIN END)], 'transactions too');
is($topics{"$database.transaction"}, 1, '... in one partition');

# ---- who else reads it
my $out = "$kafka->{dir}/console.txt";
my $pid = fork() // die "fork: $!";
if (!$pid)
{
	open(STDOUT, '>', $out);
	open(STDERR, '>', "$out.err");
	exec($kafka->java('org.apache.kafka.tools.consumer.ConsoleConsumer', '--bootstrap-server', $kafka->address, '--topic', 'x.pair', '--from-beginning', '--isolation-level', 'read_committed',
		'--timeout-ms', '5000', '--max-messages', scalar(@pair), '--formatter-property', 'print.key=true')) or exit(1);
}
waitpid($pid, 0);
my @console = map { [ split(/\t/, $_, 2) ] } split(/\n/, slurp($out));
is_deeply([ sort map { "$_->[0] $_->[1]" } @console ], [ sort map { "$_->{key} " . ($_->{text} // 'null') } @pair ], "Kafka's own consumer reads the same messages") or diag(slurp("$out.err"));

# ---- compression, seen in the broker's files
sub codecs
{
	my ($topic) = @_;
	my @files = glob("$kafka->{dir}/data/$topic-*/*.log");
	open(my $pipe, '-|', $kafka->java('org.apache.kafka.tools.DumpLogSegments', '--files', join(',', @files))) or die "DumpLogSegments: $!";
	my %codec = map { /isControl: false.*compresscodec: (\w+)/ || /compresscodec: (\w+).*isControl: false/ ? ($1 => 1) : () } <$pipe>;
	close($pipe);
	return join(' ', sort keys %codec);
}
$postgres->psql("insert into other.pair select i, 'many', i from generate_series(1000, 3000) i");
$export->wait_for_all;
like(codecs('x.pair'), qr/\bzstd\b/, 'batches are compressed as the server says, with this broker');
$postgres->psql("alter server zipped options (set compression 'none')");
$postgres->psql("create table other.plain (id int primary key, v text); insert into other.plain select i, repeat('x', 100) from generate_series(1, 2000) i");
$export->wait_for_all;
is(codecs('x.plain'), 'none', '... also when it says none, at once');

# ---- partition_key, and a format that has another message for a deleted row
$postgres->psql('create schema parts; create table parts.line (orders int, line int, v int, primary key (orders, line))');
my $parts = CdcBridge::KafkaExport->new(postgres => $postgres, kafka => $kafka, name => 'parts_out', server => 'zipped', tables => '{parts.*}', options => '{"topic_partitions": 5,
	"format": "debezium-unwrapped-json", "unwrap_deletes": "tombstone", "transforms": [{"tables": "parts.line", "partition_key": ["orders"]}]}')->start->wait_for_state('streaming');
$postgres->psql('insert into parts.line select i % 6, i, 0 from generate_series(1, 60) i; delete from parts.line where line = 7');
$parts->wait_for_all;
my @lines = $kafka->messages('parts.line');
my %order_in;
for (@lines) { my ($order) = $_->{key} =~ /"orders":(\d+)/ or next; $order_in{$order}{ $_->{partition} } = 1; }
is_deeply([ map { scalar(keys %$_) } @order_in{ 0 .. 5 } ], [ (1) x 6 ], 'rows with one partition_key are in one partition');
is_deeply([ map { $_->{value} ? 'row' : 'tombstone' } grep { $_->{key} =~ /"line":7\b/ } @lines ], [qw(row tombstone)], 'a format that has no value for a deleted row has one tombstone');
$parts->drop;

# ---- compacted topics take no message without a key
$postgres->psql("create schema small; create table small.t (id int primary key, v int); insert into small.t values (1, 1)");
my $compact = CdcBridge::KafkaExport->new(postgres => $postgres, kafka => $kafka, name => 'small_out', server => 'zipped', tables => '{small.*}',
	options => '{"topic": "one_for_all", "topic_cleanup_policy": "compact"}')->start->wait_for_state('streaming');
$postgres->psql('insert into small.t values (2, 2); truncate small.t; insert into small.t values (3, 3)');
$compact->wait_for_status('tables_stopped', qr/^1$/);
$compact->wait_for_all;
is($postgres->psql("select last_error_sqlstate from pg_stat_cdc_export_table where pipeline = 'small_out'"), '22004', 'TRUNCATE stops a table whose topic is compacted');
is_deeply([ map { "$_->{value}{op} $_->{key}" } $kafka->messages('one_for_all') ], [ 'r {"id":1}', 'c {"id":2}' ], '... behind what came before it; a topic of a fixed name');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();
