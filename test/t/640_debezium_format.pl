# cells: pg15 pg18
# Debezium JSON, field by field, as the documentation of Debezium's PostgreSQL connector fixes it: each kind of record has these members
# and no others but ours; with schemas each payload is what its schema says; and the unwrapped form.

use strict;
use warnings;

use CdcBridge::Decode;
use CdcBridge::Export;
use CdcBridge::Postgres;
use JSON::PP ();
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres, tables => '{s1.*}', options => '{"server_name": "PG_server"}')->setup;
$postgres->psql(q{create schema s1; create schema s2; create type s1.mood as enum ('a', 'b');
	create table s1.customers (id serial primary key, first_name varchar(255) not null, note text, price numeric(10,2), made timestamptz, feel s1.mood, list int[], doc jsonb, raw bytea, "odd-name" int);
	create table s2."t-2" (id int primary key)});
my $slot = CdcBridge::Decode->new($postgres, 'a', format => 'debezium-json', server_name => 'PG_server', include_transaction => 'on', messages => 'on', schema_changes => 'on', include_key => 'on');
$export->start->wait_for_state('streaming');    # somebody has to want schema changes
$postgres->psql(q{select pg_logical_emit_message(false, 'foo', 'bar'); begin; insert into s1.customers values (1, 'Anne', 'x', 1.50, '2024-01-01 00:00:00+00', 'a', '{1,NULL}', '{}', '\x01', 7); insert into s2."t-2" values (1); select pg_logical_emit_message(true, 'foo', 'bar'); commit;
	update s1.customers set first_name = 'Anne Marie' where id = 1; alter table s1.customers replica identity full; update s1.customers set id = 2; delete from s1.customers; truncate s1.customers});
my $now = time();
my @all = $slot->peek;
my @records = map { $_->{value} } @all;
sub kind { my ($value) = @_; return $value->{op} // $value->{status} // 'schema'; }
is(join(' ', map { kind($_) } @records), 'm BEGIN c c m END BEGIN u END BEGIN schema END BEGIN u END BEGIN d END BEGIN t END', 'records, those outside of transactions first');
my %of;
push @{ $of{ kind($_) } }, $_ for @records;
sub members { my ($value) = @_; return join(' ', sort keys %$value); }

# ---- members, as documented; seq is ours
my $source = 'connector db lsn name schema seq sequence snapshot table ts_ms ts_ns ts_us txId version xmin';
is(members($_), 'after before op source transaction ts_ms ts_ns ts_us', "$_->{op}: the envelope") for map { @{ $of{$_} } } qw(c u d);
is(members($of{t}[0]), 'after before cascade op restart_identity source transaction ts_ms ts_ns ts_us', 't: the envelope, and what the statement said');
is(members($_), 'message op source transaction ts_ms ts_ns ts_us', 'm: the envelope') for @{ $of{m} };
is(members($_->{source}), $source, kind($_) . ': source') for grep { $_->{source} } @records;
is(members($_->{transaction}), 'data_collection_order id total_order', kind($_) . ': transaction') for grep { $_->{transaction} } @records;
is(members($_), 'data_collections event_count id status ts_ms', "$_->{status}: members") for map { @{ $of{$_} } } qw(BEGIN END);
is(members($of{schema}[0]), 'command databaseName ddl schemaName source tableChanges transaction ts_ms', 'schema change: members of its topic, and the command');

# ---- their values
my ($c, $c2) = @{ $of{c} };
is_deeply([ @$c{qw(op before)}, $c->{after}{first_name}, $c->{after}{id} ], [ 'c', undef, 'Anne', 1 ], 'c: before is null, after the row');
is_deeply([ @{ $c->{source} }{qw(connector name db schema table snapshot xmin seq)} ], [ 'postgresql', 'PG_server', 'postgres', 's1', 'customers', 'false', undef, 1 ], 'c: source');
like($c->{source}{sequence}, qr/^\["\d+","\Q$c->{source}{lsn}\E"\]$/, 'sequence: a JSON array of two LSNs in a string, the second that of the change');
for my $moment ($c, $c->{source})
{
	cmp_ok(abs($moment->{ts_ms} / 1000 - $now), '<', 600, 'ts_ms is milliseconds of now');
	is(int($moment->{ts_us} / 1000), $moment->{ts_ms}, 'ts_us are microseconds of the same moment');
	is($moment->{ts_ns}, "$moment->{ts_us}000", 'ts_ns nanoseconds');
}
my ($begin, $end) = ($of{BEGIN}[0], $of{END}[0]);
is_deeply([ @$begin{qw(status event_count data_collections)} ], [ 'BEGIN', undef, undef ], 'BEGIN');
like($begin->{id}, qr/^$c->{source}{txId}:\d+$/, 'its id is txId:LSN');
is_deeply([ map { $_->{transaction}{id} } $c, $c2, $of{m}[1] ], [ ($begin->{id}) x 3 ], 'all of the transaction have that id');
is_deeply([ map { [ @{ $_->{transaction} }{qw(total_order data_collection_order)} ] } $c, $c2, $of{m}[1] ], [ [ 1, 1 ], [ 2, 1 ], [ 3, undef ] ], 'total_order and data_collection_order');
is_deeply([ @$end{qw(id event_count data_collections)} ], [ $begin->{id}, 3, [ { data_collection => 's1.customers', event_count => 1 }, { data_collection => 's2.t-2', event_count => 1 } ] ], 'END counts by table');
is_deeply([ $of{u}[0]{before}, $of{u}[0]{after}{first_name} ], [ undef, 'Anne Marie' ], 'u: before is null when the log has no old row');
is_deeply([ $of{u}[1]{before}{id}, $of{u}[1]{before}{first_name}, $of{u}[1]{after}{id} ], [ 1, 'Anne Marie', 2 ], 'u under REPLICA IDENTITY FULL: before is the old row');
is_deeply([ $of{d}[0]{after}, $of{d}[0]{before}{id} ], [ undef, 2 ], 'd: after is null');
is_deeply([ @{ $of{t}[0] }{qw(before after)} ], [ undef, undef ], 't: no rows');
my ($outside, $inside) = @{ $of{m} };
is_deeply([ map { $_->{message} } $outside, $inside ], [ ({ prefix => 'foo', content => 'YmFy' }) x 2 ], 'm: prefix, and the content in base64');
is_deeply([ map { @{ $_->{source} }{qw(schema table)} } $outside, $inside ], [ ('') x 4 ], 'm: no schema and no table');
is_deeply([ $outside->{source}{txId}, $outside->{transaction}, $inside->{source}{txId} ], [ undef, undef, $c->{source}{txId} ], 'm: txId only inside of a transaction');
my ($change) = @{ $of{schema}[0]{tableChanges} };
is_deeply([ $of{schema}[0]{databaseName}, $of{schema}[0]{schemaName}, $change->{type}, $change->{id}, $change->{table}{primaryKeyColumnNames} ],
	[ 'postgres', 's1', 'ALTER', '"postgres"."s1"."customers"', ['id'] ], 'schema change');
is_deeply([ map { $_->{key} } @all[ 0, 1, 2, 4, 5, 10, 19 ] ],
	[ { prefix => 'foo' }, { id => $begin->{id} }, { id => 1 }, { prefix => 'foo' }, { id => $begin->{id} }, { databaseName => 'postgres' }, undef ], 'keys: of messages the prefix, of marks the transaction, of rows the primary key, of TRUNCATE none');

# ---- with schemas each payload is what its schema says
sub conforms
{
	my ($schema, $value, $path) = @_;
	return $schema->{optional} ? () : "$path is null" if !defined $value;
	my $type = $schema->{type};
	if ($type eq 'struct')
	{
		return "$path is no object" unless ref $value eq 'HASH';
		my %field = map { $_->{field} => $_ } @{ $schema->{fields} };
		return ((map { conforms($field{$_}, $value->{$_}, "$path.$_") } grep { exists $value->{$_} || !$field{$_}{optional} } sort keys %field),
			map { "$path.$_ is in no schema" } grep { !$field{$_} } sort keys %$value);
	}
	return ref $value eq 'ARRAY' ? map { conforms($schema->{items}, $value->[$_], "$path\[$_]") } 0 .. $#$value : "$path is no array" if $type eq 'array';
	return ref $value ? "$path is no value" : () if $type eq 'string' || $type eq 'bytes';
	return JSON::PP::is_bool($value) ? () : "$path is no boolean" if $type eq 'boolean';
	return $value =~ /^-?\d+$/ ? () : "$path is no integer" if $type =~ /^int(16|32|64)$/;
	return $value =~ /^-?\d/ ? () : "$path is no number" if $type =~ /^(float|double)$/;
	return "$path has the type $type";
}
my @with = $slot->peek(schemas => 'on');
is(scalar(@with), scalar(@all), 'with schemas there are as many records');
is_deeply([ map { conforms($_->{value}{schema}, $_->{value}{payload}, 'value') } @with ], [], 'every value is what its schema says');
is_deeply([ map { conforms($_->{key}{schema}, $_->{key}{payload}, 'key') } grep { $_->{key} } @with ], [], 'every key is what its schema says');
is_deeply([ map { $_->{value}{payload}{op} // 'none' } @with ], [ map { $_->{op} // 'none' } @records ], 'payloads are the records');
my %named = map { ($_->{value}{schema}{name} => 1, $_->{key} ? ($_->{key}{schema}{name} => 1) : ()) } @with;
is_deeply([ sort keys %named ],
	[ sort qw(PG_server.s1.customers.Envelope PG_server.s1.customers.Key PG_server.s2.t_2.Envelope PG_server.s2.t_2.Key), map { "io.debezium.connector.$_" } qw(postgresql.MessageKey postgresql.MessageValue
		postgresql.SchemaChangeKey postgresql.SchemaChangeValue common.TransactionMetadataKey common.TransactionMetadataValue) ], 'P33: schemas have the names that Debezium gives them, with no character that Avro has not');
my ($envelope) = grep { $_->{name} eq 'PG_server.s1.customers.Envelope' } map { $_->{value}{schema} } @with;
my %field = map { $_->{field} => $_ } @{ $envelope->{fields} };
is_deeply([ map { [ @$_{qw(field type name)} ] } @{ $field{after}{fields} } ],
	[ [ 'id', 'int32', undef ], [ 'first_name', 'string', undef ], [ 'note', 'string', undef ], [ 'price', 'string', undef ], [ 'made', 'string', 'io.debezium.time.ZonedTimestamp' ], [ 'feel', 'string', 'io.debezium.data.Enum' ],
		[ 'list', 'array', undef ], [ 'doc', 'string', 'io.debezium.data.Json' ], [ 'raw', 'bytes', undef ], [ 'odd-name', 'int32', undef ] ], 'columns and their semantic types');
is_deeply([ @{ $field{source} }{qw(name version optional)}, $field{transaction}{name}, $field{op}{optional} ], [ 'io.debezium.connector.postgresql.Source', 1, JSON::PP::false, 'event.block', JSON::PP::false ], 'source, transaction and op');
is_deeply([ map { [ $_->{field}, $_->{type}, $_->{optional} ? 1 : 0 ] } @{ $field{source}{fields} } ],
	[ map { [ split(/:/) ] } qw(version:string:0 connector:string:0 name:string:0 ts_ms:int64:0 snapshot:string:1 db:string:0 sequence:string:1 ts_us:int64:1 ts_ns:int64:1 schema:string:0 table:string:0 txId:int64:1 lsn:int64:1 xmin:int64:1
		origin:string:1 xid:int64:1 seq:int64:1) ], 'source: members, types, which may be null, in their order');

# ---- rows of a copy
$postgres->psql(q{insert into s1.customers values (5, 'copied'); select cdc_resync_table('shop_out', 's1.customers')});
$export->wait_for_all->wait_for_state('streaming');
my ($read) = grep { ($_->{op} // '') eq 'r' } $export->records;
is_deeply([ $read->{before}, $read->{after}{first_name}, @{ $read->{source} }{qw(snapshot txId)}, $read->{transaction} ], [ undef, 'copied', 'true', undef, undef ], 'r: a copied row');

# ---- unwrapped
my %unwrap = (format => 'debezium-unwrapped-json', include_transaction => 'off', messages => 'off', schema_changes => 'off', actions => 'insert,update,delete', tables => 's1.*', include_key => 'off');
my @rows = $slot->peek(%unwrap);
is_deeply([ map { [ @$_{qw(id first_name __deleted)} ] } @rows[ 0 .. 3 ] ], [ [ 1, 'Anne', 'false' ], [ 1, 'Anne Marie', 'false' ], [ 2, 'Anne Marie', 'false' ], [ 2, 'Anne Marie', 'true' ] ], 'unwrapped: the row, and whether it was deleted');
@rows = $slot->peek(%unwrap, unwrap_deletes => 'tombstone', include_key => 'on', unwrap_fields => 'op,table,lsn,source.ts_ms,transaction.id:TX');
is_deeply([ @{ $rows[3] }{qw(key value)} ], [ { id => 2 }, undef ], 'P36: a deleted row as null under its key');
is_deeply([ sort grep { /^__/ } keys %{ $rows[0]{value} } ], [ qw(__TX __lsn __op __source_ts_ms __table) ], 'members of the envelope, under their names');
is_deeply([ @{ $rows[0]{value} }{qw(__TX __lsn __op __source_ts_ms __table)} ], [ $begin->{id}, $c->{source}{lsn}, 'c', $c->{source}{ts_ms}, 'customers' ], '... are those of the envelope');
is(scalar($slot->peek(%unwrap, unwrap_deletes => 'drop')), scalar(@rows) - 1, 'deleted rows are left out');
@with = $slot->peek(%unwrap, schemas => 'on', unwrap_fields => 'op,snapshot,ts_ns,transaction.total_order');
is_deeply([ map { conforms($_->{schema}, $_->{payload}, 'value') } @with ], [], 'every unwrapped row is what its schema says');
is(kind(($slot->peek(%unwrap, actions => 'truncate'))[0]), 't', 'P23: TRUNCATE keeps its envelope');
like($slot->error(%unwrap, unwrap_fields => 'op,nothing'), qr/22023: invalid value for option "unwrap_fields": "op,nothing"\nDETAIL:  "nothing" is no member of Debezium's envelope\.\nHINT:  Give names/, 'a member that there is not');

done_testing();
