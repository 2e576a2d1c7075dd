# cells: pg15 pg18
# needs: avro readers
# Avro: documents and schemas in a registry (a fake one), read by two readers that are not ours: every type, names, records of all kinds,
# definitions that change, subjects, a login; a registry that refuses, or does not answer.

use strict;
use warnings;

use CdcBridge::Env qw(build_dir new_folder poll_until slurp tree);
use CdcBridge::Export;
use CdcBridge::FakeRegistry;
use CdcBridge::Postgres;
use JSON::PP ();
use MIME::Base64 ();
use Test::More;

my $readers = build_dir() . '/avro-readers';
my $python = "PYTHONPATH=$readers python3";
plan(skip_all => 'fastavro and avro for Python are not there: test/tools/get-avro-readers build/avro-readers')
  if system(qq{$python -c 'import avro, fastavro' 2>/dev/null}) != 0;

my $postgres = CdcBridge::Postgres->new;
my $registry = CdcBridge::FakeRegistry->new(username => 'me', password => 'se/cret');
my $export = CdcBridge::Export->new(postgres => $postgres, tables => '{"odd-1.*"}', server_options => ", schema_registry_url '" . $registry->url . "/'",
	options => '{"format": "debezium-avro", "include_key": true, "include_transaction": true, "messages": true, "server_name": "pg"}')->setup;
$postgres->psql(q{create schema "odd-1"; create type mood as enum ('a', 'b'); create extension hstore;
	create table "odd-1"."t.x" (id int primary key, "x$1" bigint, "x#1" smallint, "x_u00241" bool, "1ä" oid, f4 real, f8 float8, n numeric(12,2), free numeric, t text, raw bytea, d date, ti time, ts timestamp, tz timestamptz, iv interval,
		u uuid, j jsonb, m mood, list int[], big text, r int4range, h hstore, b bit(3), cash money, ip inet);
	alter table "odd-1"."t.x" alter big set storage external; create table "odd-1".first (id int primary key); insert into "odd-1".first values (1)});

# What the readers say of the files, and of which schemas.
sub read_all
{
	my (@with) = @_;
	my $schemas = new_folder('avro') . '/schemas';
	open(my $out, '>:utf8', $schemas) or die $!;
	print $out join("\t", @$_) . "\n" for $registry->schemas;
	close($out);
	my $read = qx(cat @{[ $export->files ]} | $python @{[ tree() ]}/test/tools/read-avro $schemas @with 2>&1);
	return map { /^\{/ ? JSON::PP->new->decode($_) : die "read-avro: $read\n" } split(/\n/, $read);
}

# ---- without a login nothing is written
$export->start;
ok($export->wait_for_status('last_error_sqlstate', '28000'), 'a registry that wants a login');
like($export->status('last_error_detail'), qr/^It answered 401: /, '... says so');
like($export->status('last_error_hint'), qr/registry_username and registry_password/, '... and the hint how to give it');
like($postgres->psql_error(q{alter server files options (add registry_password 'x')}), qr/option "registry_password" does not belong to a .*server\nHINT:  Set it on the user mapping/, 'a password is for the user mapping');
$postgres->psql(q{create user mapping for public server files options (registry_username 'me', registry_password 'se/cret')});
$postgres->psql(q{select cdc_start_pipeline('shop_out')});
$export->wait_for_state('streaming');

# ---- every type, and records of all kinds
$postgres->psql(q{begin; insert into "odd-1"."t.x" values (1, -9223372036854775808, -32768, true, 4294967295, 0.5, 'NaN', -1234.50, '1e60', E'h\u00e4\n', '\x00ff01', 'infinity', '24:00:00', '0044-03-15 12:00:00 BC', '2024-02-29 12:00:00+02', '-1 mon 3 days',
		'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a": 1e400}', 'b', '{{1,NULL},{3,4}}', repeat('x', 4000), '[1,5)', 'a=>NULL', '101', '-1.50', '10.0.0.1/8');
	select pg_logical_emit_message(true, 'foo', 'bar'); commit;
	update "odd-1"."t.x" set n = null where id = 1; alter table "odd-1"."t.x" drop column "x#1", add column "new one" int default 7; update "odd-1"."t.x" set id = 2; delete from "odd-1"."t.x"; truncate "odd-1"."t.x"});
$export->wait_for_all;
my @all = read_all();
sub kind { my ($r) = @_; my $d = $r->{value}{data}; return $d->{op} // $d->{status} // 'schema'; }
is(join(' ', map { kind($_) } @all), 'r BEGIN c m END BEGIN u END BEGIN schema END BEGIN u END BEGIN d END BEGIN t END', 'both readers read records of all kinds, and agree');
my ($c) = grep { kind($_) eq 'c' } @all;
my %after = %{ $c->{value}{data}{after} };
is_deeply([ @after{qw(id x_u00241_ x_u00231 x_u00241 _u0031_u00e4)} ], [ 1, -9223372036854775808, -32768, JSON::PP::true, 4294967295 ], 'P33, P34: names that Avro does not take are made others, each its own');
is_deeply([ @after{qw(f4 f8 n free t raw)} ], [ 0.5, 'nan', '-1234.50', '1' . '0' x 60, "h\x{e4}\n", q{b'\\x00\\xff\\x01'} ], 'P24, P25: numbers, texts, bytes');
is_deeply([ @after{qw(d ti ts tz iv)} ], [ 'infinity', '24:00:00', '0044-03-15T12:00:00 BC', '2024-02-29T10:00:00Z', 'P-1M3D' ], 'P27, P28: times as strings lose nothing');
is_deeply([ @after{qw(u m list r h b cash ip)} ], [ 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'b', '{{1,NULL},{3,4}}', '[1,5)', '"a"=>NULL', '101', '-1.50', '10.0.0.1/8' ], 'P29, P30, P31: arrays and others as PostgreSQL writes them');
like($after{j}, qr/^\{"a": 10{400}\}$/, 'jsonb keeps its digits');
is_deeply([ $c->{value}{data}{before}, @{ $c->{value}{data}{source} }{qw(connector name schema table snapshot)} ], [ undef, 'postgresql', 'pg', 'odd-1', 't.x', 'false' ], 'source');
is_deeply([ $c->{key}{data}, $c->{key}{name}, $c->{value}{name} ], [ { id => 1 }, 'pg.odd_u002d1.t_u002ex.Key', 'pg.odd_u002d1.t_u002ex.Envelope' ], 'key, and names of records');
my @u = grep { kind($_) eq 'u' } @all;
is($u[0]{value}{data}{after}{big}, '__debezium_unavailable_value', 'P1: a large value that was not touched');
is_deeply([ $u[0]{value}{data}{after}{n}, $u[1]{value}{data}{before}{id}, $u[1]{value}{data}{after}{id} ], [ undef, 1, 2 ], 'NULL; a key that changed');
my ($end) = grep { kind($_) eq 'END' } @all;
is_deeply([ @{ $end->{value}{data} }{qw(event_count data_collections)} ], [ 2, [ { data_collection => 'odd-1.t.x', event_count => 1 } ] ], 'END counts by table') or diag(explain($end));
my ($message) = grep { kind($_) eq 'm' } @all;
is_deeply([ $message->{value}{data}{message}, $message->{key}{data} ], [ { prefix => 'foo', content => q{b'bar'} }, { prefix => 'foo' } ], 'a message');
my ($schema) = grep { kind($_) eq 'schema' } @all;
is(JSON::PP->new->decode($schema->{value}{data}{change})->{tableChanges}[0]{type}, 'ALTER', 'a schema change');

# ---- P18, evolution: who has the newer schema reads what was written by the older one, and the other way round
my %subject = map { $_->[1] => 1 } $registry->schemas;
is_deeply([ sort keys %subject ], [ sort map { ("$_-key", "$_-value") } 'pg', 'pg.odd-1.first', 'pg.odd-1.t.x', 'pg.transaction', 'pg.message' ], 'subjects by topic');
my %version = map { $_->[0] => 1 } grep { $_->[1] eq 'pg.odd-1.t.x-value' } $registry->schemas;
my @versions = sort keys %version;
is(scalar(@versions), 2, 'each definition is registered once');
my ($value_schema) = map { JSON::PP->new->decode($_->[2]) } grep { $_->[1] eq 'pg.odd-1.t.x-value' } $registry->schemas;
my ($doc) = grep { $_->{name} eq 'x_u00231' } @{ $value_schema->{fields}[0]{type}[1]{fields} };
is($doc->{doc}, 'x#1', 'a schema tells the name as it is');
for my $id (@versions)
{
	my $schemas = new_folder('avro') . '/schemas';
	open(my $out, '>:utf8', $schemas) or die $!;
	print $out join("\t", @$_) . "\n" for grep { $_->[1] =~ /t\.x-value$/ } $registry->schemas;
	close($out);
	open(my $lines, '>', "$schemas.lines") or die $!;
	for my $line (map { split(/\n/, slurp($_)) } $export->files)
	{
		my $record = JSON::PP->new->decode($line);
		next unless $record->{value};
		my $number = unpack('N', substr(MIME::Base64::decode_base64($record->{value}), 1, 4));
		print $lines "$line\n" if grep { $_ == $number } @versions;
	}
	close($lines);
	my @read = map { JSON::PP->new->decode($_) } split(/\n/, qx($python @{[ tree() ]}/test/tools/read-avro $schemas --with $id < $schemas.lines));
	is(join(' ', map { $_->{value}{resolved}{op} } @read), 'c u u d t', "P18: all documents are read by schema $id");
}

# ---- a registry that refuses stops the pipeline before the record; one that does not answer, for a while
$registry->behave('409');
$postgres->psql('alter table "odd-1"."t.x" drop column "new one"; insert into "odd-1"."t.x" (id) values (5)');
ok($export->wait_for_status('last_error_sqlstate', 'YC004'), 'a schema that is not compatible');
like($export->status('last_error'), qr/the schema registry does not take the schema of subject "pg\.odd-1\.t\.x-value"/, '... is told');
like($export->status('last_error_detail'), qr/^It answered 409: .*as it was told/, '... with what the registry says');
$registry->behave('silent');
$postgres->psql(q{select cdc_start_pipeline('shop_out')});
ok(poll_until(sub { $postgres->psql('select count(*) from pg_stat_cdc_export where pid is not null') eq '1' }), 'a worker waits for an answer');
$postgres->psql(q{select pg_terminate_backend(pid) from pg_stat_cdc_export});
$registry->behave('honest');
$postgres->psql(q{select cdc_start_pipeline('shop_out')});
$export->wait_for_state('streaming')->wait_for_all;
is(join(' ', map { kind($_) } (read_all())[ -6 .. -1 ]), 'BEGIN schema END BEGIN c END', 'then it goes on, nothing is lost and nothing is there twice');

# ---- logical types
$postgres->psql(q{select cdc_drop_pipeline('shop_out'); alter server files options (add schema_registry_subject 'topic-record')});
my $typed = CdcBridge::Export->new(postgres => $postgres, name => 'typed', tables => '{shop.*}', dir => $export->{dir}, options => '{"format": "debezium-avro", "include_key": true, "logical_types": true, "server_name": "pg", "schema_changes": "ignore"}');
$postgres->psql(q{create schema shop; create table shop.t (id numeric(30,3) primary key, n numeric(6,0), d date, ti time, ts timestamp, tz timestamptz, u uuid)});
$typed->start->wait_for_state('streaming');
$postgres->psql(q{insert into shop.t values (-123456789012345678901234567.125, -128, '2024-02-29', '12:34:56.789012', '1969-12-31 23:59:59.999999', '2024-02-29 12:00:00.5+02', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')});
$typed->wait_for_all;
$export = $typed;
my ($row) = read_all();
is_deeply($row->{value}{data}{after}, { id => q{Decimal('-123456789012345678901234567.125')}, n => q{Decimal('-128')}, d => 'datetime.date(2024, 2, 29)', ti => 'datetime.time(12, 34, 56, 789012)',
	ts => 'datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)', tz => 'datetime.datetime(2024, 2, 29, 10, 0, 0, 500000, tzinfo=datetime.timezone.utc)', u => q{UUID('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')} }, 'logical types');
ok((grep { $_->[1] eq 'pg.shop.t-pg.shop.t.Key' } $registry->schemas), 'subjects by topic and record');

# ---- more tables than the format remembers, in turns: the registry is asked once for each schema
my $many = 70;
$postgres->psql(join('', map { "create table shop.many_$_ (id int primary key, v_$_ int); " } 1 .. $many));
for my $round (1 .. 3) { $postgres->psql('begin; ' . join('', map { "insert into shop.many_$_ values ($round, $_); " } 1 .. $many) . 'commit'); }
$typed->wait_for_all;
my %asked;
$asked{ $_->[1] }++ for grep { $_->[1] =~ /many_/ } $registry->schemas;
is(scalar(keys %asked), 2 * $many, 'each of many tables has its schemas in the registry');
is_deeply([ grep { $asked{$_} != 1 } sort keys %asked ], [], '... which was asked once for each');

$postgres->psql(q{insert into shop.t (id, d) values (1, 'infinity')});
ok($typed->wait_for_status('last_error_detail', 'a value of table "shop.t" has no form in this format'), 'P24: infinity has no logical type, which is told') or diag($typed->describe);

# ---- what is refused
$postgres->psql(q{create server plain foreign data wrapper cdc_null options (schema_registry_url 'http://127.0.0.1.example.com/'); create user mapping for public server plain options (registry_username 'me', registry_password 'x');
	create server none foreign data wrapper cdc_null; select cdc_start_pipeline('plain', sink => 'plain', tables => '{shop.*}', options => '{"format": "debezium-avro"}'); select cdc_start_pipeline('none', sink => 'none', tables => '{shop.*}', options => '{"format": "debezium-avro"}')});
ok($postgres->poll(q{select last_error from pg_stat_cdc_export where pipeline = 'plain'}, qr/password for the schema registry of server "plain" would be sent without TLS/), 'a password is not sent without TLS');
ok($postgres->poll(q{select last_error_sqlstate from pg_stat_cdc_export where pipeline = 'none'}, 'HV00J'), 'a server without a registry');
like($postgres->psql_error("select count(*) from pg_logical_slot_peek_changes((select slot_name from pg_replication_slots where plugin = 'cdc_bridge' and not active limit 1), null, null, 'format', 'debezium-avro')"),
	qr/0A000: format "debezium-avro" needs a schema registry/, 'a reader of a slot has no registry') if $typed->stop;
$typed->drop;
done_testing();
