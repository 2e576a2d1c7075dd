# Avro in topics: bytes as Confluent's serializers frame them, read by kcat and decoded by two readers that are not ours with the schemas of a (fake)
# registry; subjects by the names of topics; rows of a copy that other processes wrote down; a table that changes; a registry that wants a login,
# refuses or is away.
# cells: pg15 pg18
# needs: kafka, avro readers

use strict;
use warnings;

use CdcBridge::Env qw(build_dir new_folder tree);
use CdcBridge::FakeRegistry;
use CdcBridge::Kafka;
use CdcBridge::KafkaExport;
use CdcBridge::Postgres;
use JSON::PP ();
use MIME::Base64 qw(encode_base64);
use Test::More;

my $readers = build_dir() . '/avro-readers';
plan(skip_all => 'fastavro and avro for Python are not there: test/tools/get-avro-readers build/avro-readers')
  if system(qq{PYTHONPATH=$readers python3 -c 'import avro, fastavro' 2>/dev/null}) != 0;

my $kafka = CdcBridge::Kafka->new;
my $postgres = CdcBridge::Postgres->new(conf => "wal_level = logical\n");
my $registry = CdcBridge::FakeRegistry->new(username => 'me', password => 'se/cret');
my %messages;

# New messages of a topic, with what the readers say of key and value: name of the record, and data.
sub new_decoded
{
	my ($topic) = @_;
	my @new = $kafka->new_messages($topic, raw => 1) or return;
	my $folder = new_folder('avro');
	open(my $schemas, '>:utf8', "$folder/schemas") or die $!;
	print $schemas join("\t", @$_) . "\n" for $registry->schemas;
	close($schemas);
	open(my $lines, '>', "$folder/lines") or die $!;
	print $lines JSON::PP->new->encode({ map { ($_->[0] => defined $_->[1] ? encode_base64($_->[1], '') : undef) } [ key => $_->{key} ], [ value => $_->{text} ] }) . "\n" for @new;
	close($lines);
	my $read = qx(PYTHONPATH=$readers python3 @{[ tree() ]}/test/tools/read-avro $folder/schemas < $folder/lines 2>&1);
	my @decoded = map { /^\{/ ? JSON::PP->new->decode($_) : die "read-avro: $read\n" } split(/\n/, $read);
	die "read-avro: $read\n" unless @decoded == @new;
	push @{ $messages{$topic} }, map { { %{ $new[$_] }, decoded => $decoded[$_] } } 0 .. $#new;
	return @{ $messages{$topic} }[ -@new .. -1 ];
}

# is_replayed by what the readers say.
{
	package AvroExport;
	use parent -norequire, 'CdcBridge::KafkaExport';

	sub _read_on
	{
		my ($self) = @_;
		my %topics = $self->{kafka}->topics;
		for my $topic (sort grep { /^cdc\./ } keys %topics)
		{
			push @{ $self->{records} }, map { $_->{decoded}{value} ? $_->{decoded}{value}{data} : () } main::new_decoded($topic);
		}
		return;
	}
}

my $export = AvroExport->new(postgres => $postgres, kafka => $kafka, server_options => ", schema_registry_url '" . $registry->url . "'",
	options => '{"format": "debezium-avro", "topic": "cdc.{schema}.{table}", "topic_partitions": 2, "server_name": "pg", "include_transaction": true, "messages": true, "snapshot_chunk_rows": 100,
		"transforms": [{"tables": "shop.many", "projection": "id, shop.slow(v) AS v"}]}')->setup;
$postgres->psql(q{create schema shop; create table shop.item (id int primary key, name text, price numeric(10,2), sold boolean);
	insert into shop.item select i, 'item ' || i, i / 4.0, i % 2 = 0 from generate_series(1, 600) i;
	create table shop."Bl ü" (id bigint primary key, raw bytea); create table shop.gone (id int primary key);
	create table shop.many as select i as id, md5(i::text) as v from generate_series(1, 800) i; alter table shop.many add primary key (id);
	-- slow enough for other processes to be worth their start
	create function shop.slow(t text) returns text language plpgsql immutable parallel safe as $$ declare x text := t; begin for i in 1 .. 1000 loop x := md5(x); end loop; return t; end $$});

# ---- the user mapping has the login
$export->start->wait_for_status('last_error_sqlstate', qr/^28000$/);
like($export->status('last_error_detail'), qr/^It answered 401: /, 'a registry that wants a login');
like($export->status('last_error_hint'), qr/registry_username and registry_password/, '... and the hint how to give it');
$postgres->psql(q{create user mapping for current_user server events options (registry_username 'me', registry_password 'se/cret'); select cdc_start_pipeline('shop_out')});
$export->wait_for_state('streaming');
$export->is_replayed('shop', 'item', 'id', 'rows of a copy are those of the table');
is(scalar(grep { $_->{decoded}{value}{data}{op} eq 'r' } @{ $messages{'cdc.shop.item'} }), 600, '... and come as such');

cmp_ok($export->status('parallel_chunks'), '>=', 1, 'several processes have read chunks: ' . $export->status('parallel_chunks'));
$export->is_replayed('shop', 'many', 'id', '... and written them in Avro');

# ---- changes, before and after one of the definition
$postgres->psql(q{insert into shop.item values (1001, E'h\u00e4\n', -0.01, null); update shop.item set price = price + 1 where id <= 50; update shop.item set id = id + 5000 where id in (7, 8); delete from shop.item where id between 20 and 29});
$export->wait_for_all->is_replayed('shop', 'item', 'id', 'P18: rows are those of the table before a column is added');
$postgres->psql(q{alter table shop.item add column stock int, alter column name type varchar(50)});
$postgres->psql(q{insert into shop.item values (1002, 'new', 1, true, 12); update shop.item set stock = id where id between 40 and 60; update shop.item set id = 6000 where id = 41; delete from shop.item where id = 42;
	insert into shop."Bl ü" values (10, '\x000a22ff'); insert into shop.gone values (1); truncate shop.gone; select pg_logical_emit_message(true, 'note', 'hello')});
$export->wait_for_all->is_replayed('shop', 'item', 'id', '... and after it');

# ---- bytes as Confluent has them, subjects by topics
my %number;
push @{ $number{ $_->[1] } }, $_->[0] for $registry->schemas;
my %distinct = map { my $subject = $_; my %ids = map { $_ => 1 } @{ $number{$subject} }; ($subject => \%ids) } keys %number;
my %topics = $kafka->topics;
my ($odd) = grep { /^cdc\.shop\.Bl/ } keys %topics;
like($odd, qr/^cdc\.shop\.Bl_/, 'a topic whose name is not the table\'s');
is_deeply([ sort keys %number ], [ sort map { ("$_-key", "$_-value") } 'cdc.shop.item', 'cdc.shop.gone', 'cdc.shop.many', $odd, 'postgres.schema_changes', 'postgres.transaction', 'postgres.message' ], 'subjects have the names of topics');
is(scalar(keys %{ $distinct{'cdc.shop.item-value'} }), 2, 'P18: a changed definition is another schema under the same subject');
is(scalar(keys %{ $distinct{'cdc.shop.item-key'} }), 1, '... and its key has still the same');
for my $topic (grep { $_ ne 'cdc_bridge_state' } sort keys %topics)
{
	new_decoded($topic);
	my $all = $messages{$topic};
	my $wrong = 0;
	for my $message (@$all)
	{
		for ([ key => $message->{key} ], [ value => $message->{text} ])
		{
			my ($of, $bytes) = @$_;
			next unless defined $bytes;
			my ($zero, $id) = unpack('CN', $bytes);
			$wrong++ if $zero != 0 || !$distinct{"$topic-$of"}{$id};
		}
	}
	ok(@$all > 0 && $wrong == 0, "topic $topic: a zero byte and a number of the topic's own subject stand before each key and value");
}
my %partitions;
$partitions{ $_->{key} }{ $_->{partition} } = 1 for @{ $messages{'cdc.shop.item'} };
is_deeply([ grep { keys %$_ > 1 } values %partitions ], [], 'all messages of a key are in one partition');
is(scalar(keys %{ { map { $_->{partition} => 1 } @{ $messages{'cdc.shop.item'} } } }), 2, '... and not all keys in the same');
my @moved = grep { $_->{decoded}{key}{data}{id} == 7 } @{ $messages{'cdc.shop.item'} };
is(join(' ', map { $_->{decoded}{value} ? $_->{decoded}{value}{data}{op} : 'tombstone' } @moved), 'r u d tombstone', 'P36: an update of the key deletes the old one, with a tombstone');
is($moved[0]{decoded}{key}{name}, 'pg.shop.item.Key', 'names of records are Debezium\'s, whatever topics are called');
is($messages{$odd}[0]{decoded}{value}{data}{after}{raw}, q{b'\\x00\\n"\\xff'}, 'bytes are bytes');
is(join(' ', map { ($_->{decoded}{value}{data}{op}) . (defined $_->{key} ? '' : ' without a key') } sort { $a->{decoded}{value}{data}{op} cmp $b->{decoded}{value}{data}{op} } @{ $messages{'cdc.shop.gone'} }), 'c t without a key', 'TRUNCATE');
is($messages{'postgres.message'}[0]{decoded}{value}{data}{message}{content}, q{b'hello'}, 'a message of pg_logical_emit_message');
is(join(' ', map { $_->{decoded}{value}{data}{status} } @{ $messages{'postgres.transaction'} }[ 0, 1 ]), 'BEGIN END', 'begins and commits');
like($messages{'postgres.schema_changes'}[-1]{decoded}{value}{data}{change}, qr/"stock"/, 'a schema change');

# ---- a registry that is away: the pipeline waits, and goes on by itself
$registry->behave('503');
$postgres->psql(q{alter table shop.item add column weight real; insert into shop.item (id, weight) values (1003, 0.5)});
$export->wait_for_status('last_error_sqlstate', qr/^08006$/);
like($export->status('last_error'), qr/of the schema of subject "cdc\.shop\.item-value"/, 'a registry that has a bad time is told');
like($export->status('state'), qr/^(retrying|streaming)$/, '... and asked again');
$registry->behave('honest');
$export->wait_for_all->is_replayed('shop', 'item', 'id', '... and then nothing is missing, and nothing there twice');

# ---- one that refuses; the worker that runs now knows the number of schema changes already
$postgres->psql(q{alter table shop.item add column colour text});
$export->wait_for_all;
$registry->behave('409');
$postgres->psql(q{alter table shop.item drop column weight; insert into shop.item (id) values (1004); update shop.item set sold = true where id = 1003});
$export->wait_for_status('last_error_sqlstate', qr/^YC004$/);
like($export->status('last_error'), qr/the schema registry does not take the schema of subject "cdc\.shop\.item-value"/, 'a schema that is not compatible stops the pipeline before the record');
is(scalar(grep { ($_->{decoded}{value}{data}{after}{id} // 0) == 1004 } map { new_decoded($_) } 'cdc.shop.item'), 0, '... of which nothing comes');
$registry->behave('honest');
$postgres->psql(q{select cdc_start_pipeline('shop_out')});
$export->wait_for_all->is_replayed('shop', 'item', 'id', '... and when it takes it the pipeline goes on from there');
unlike($postgres->log_text, qr{se/cret}, 'no log has the password');
$export->stop->drop;

# ---- a server without a registry
$postgres->psql(q{alter server events options (drop schema_registry_url); select cdc_start_pipeline('none', sink => 'events', tables => '{shop.item}', options => '{"format": "debezium-avro"}')});
ok($postgres->poll(q{select last_error_sqlstate from pg_stat_cdc_export where pipeline = 'none'}, 'HV00J'), 'a server without a registry');
done_testing();
