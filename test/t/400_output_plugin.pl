# cells: pg15 pg17 pg18
# The output plugin, read by the SQL functions: records of both formats, what each option does, what is refused and how.

use strict;
use warnings;

use CdcBridge::Decode;
use CdcBridge::Postgres;
use JSON::PP ();
use Test::More;

my $postgres = CdcBridge::Postgres->new;

# ---- a server that does not allow the plugin says so; the administrator's list is never passed by
SKIP:
{
	skip('this minor release has no output_plugin_libraries', 1) if $postgres->psql(q{select count(*) from pg_settings where name = 'output_plugin_libraries'}) eq '0';
	like($postgres->psql_error(q{select pg_create_logical_replication_slot('no', 'cdc_bridge')}), qr/may not be used as an output plugin/, 'a plugin that is not listed is refused');
}
$postgres->allow_output_plugin;
$postgres->psql(<<'SQL');
create schema shop;
create table shop.t (id int primary key, name text, price numeric(10, 2), doc jsonb, data bytea, tags text[]);
create table shop."odd ""name"".x" ("a""b" int primary key, "A" int, "ä€" int);
create table public.other (id int primary key);
SQL
my $slot = CdcBridge::Decode->new($postgres, 'a');

# ---- plain JSON
$postgres->psql(<<'SQL');
insert into shop.t values (1, E'a"\\\n', 12.50, '{"a": 1}', '\x01ff', '{x,NULL,"y z"}');
update shop.t set name = 'b' where id = 1;
update shop.t set id = 2 where id = 1;
delete from shop.t where id = 2;
truncate shop.t restart identity;
SQL
my @records = $slot->take;
is(scalar(@records), 5, 'five records');
my ($insert, $update, $rekey, $delete, $truncate) = @records;
is_deeply([ @$insert{qw(op schema table seq)} ], [ 'insert', 'shop', 't', 1 ], 'insert: head');
is_deeply($insert->{row}, { id => 1, name => "a\"\\\n", price => '12.50', doc => '{"a": 1}', data => 'Af8=', tags => [ 'x', undef, 'y z' ] }, 'insert: row');
is_deeply($insert->{key}, { id => 1 }, 'insert: key');
ok(!exists $insert->{old}, 'insert: no old row');
like($insert->{lsn}, qr{^[0-9A-F]+/[0-9A-F]+$}, 'insert: lsn');
like($insert->{time}, qr{^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$}, 'insert: time');
is($update->{row}{name}, 'b', 'update: row');
ok(!exists $update->{old}, 'update: the log has no old row when the key stays');
is_deeply([ $rekey->{old}, $rekey->{key} ], [ { id => 1 }, { id => 2 } ], 'update of the key: old has the old one');
is_deeply([ $delete->{op}, $delete->{old}, $delete->{key}, exists $delete->{row} ], [ 'delete', { id => 2 }, { id => 2 }, '' ], 'delete');
is_deeply([ @$truncate{qw(op table)}, map { $_ ? 1 : 0 } @$truncate{qw(cascade restart_identity)} ], [ 'truncate', 't', 0, 1 ], 'P23: truncate restart identity');

# ---- Debezium JSON
$postgres->psql(q{insert into shop.t values (1, 'x', 1, null, null, null); update shop.t set id = 2; delete from shop.t; truncate shop.t, public.other cascade});
@records = $slot->take(format => 'debezium-json');
is_deeply([ map { $_->{op} } @records ], [ qw(c u d t t) ], 'letters of operations');
is_deeply([ @{ $records[0] }{qw(before after transaction)} ], [ undef, { id => 1, name => 'x', price => '1.00', doc => undef, data => undef, tags => undef }, undef ], 'c: before, after, transaction');
my $source = $records[0]{source};
is_deeply([ @$source{qw(connector name db schema table snapshot)} ], [ qw(postgresql postgres postgres shop t false) ], 'source');
like($source->{sequence}, qr/^\["\d+","$source->{lsn}"\]$/, 'source: sequence');
cmp_ok(abs($source->{ts_ms} - time() * 1000), '<', 600_000, 'source: time of the commit in milliseconds');
is_deeply($records[1]{before}, { id => 1 }, 'u: before has what the log has');
is_deeply([ $records[2]{before}, $records[2]{after} ], [ { id => 2 }, undef ], 'd');
is_deeply([ sort map { "$_->{source}{schema}.$_->{source}{table}" } @records[ 3, 4 ] ], [ 'public.other', 'shop.t' ], 'P23: TRUNCATE of several tables: one record each');
ok($records[3]{cascade}, 'P23: ... says that it was CASCADE');

# ---- P33: names
$postgres->psql(q{insert into shop."odd ""name"".x" values (1, 2, 3)});
my ($line) = $slot->take_lines;
my $odd = JSON::PP->new->utf8->decode($line);
is_deeply([ $odd->{table}, $odd->{row} ], [ 'odd "name".x', { 'a"b' => 1, A => 2, "\x{e4}\x{20ac}" => 3 } ], 'P33: names with quotes, dots, capitals and several bytes');

# ---- options
sub lines_with { my (%options) = @_; return $slot->peek_lines(%options); }
$postgres->psql(<<'SQL');
begin;
insert into shop.t values (5, 'x', 'NaN', '{"b": 1.0,	"a": [1e400]}', '\xff', '{{1,2},{3,4}}');
insert into public.other values (1);
select pg_logical_emit_message(true, 'pre', 'inside');
select pg_logical_emit_message(false, 'pre', 'outside');
commit;
insert into shop.t values (6, 'y', -0.10, null, null, '[2:3]={1,2}');
SQL
is(scalar(lines_with()), 3, 'default: no messages, no marks');
is_deeply([ map { JSON::PP::decode_json($_)->{op} } lines_with(include_transaction => 'on') ], [ qw(begin insert insert commit begin insert commit) ], 'include_transaction');
is_deeply([ map { JSON::PP::decode_json($_)->{op} } lines_with(messages => 'true') ], [ qw(message insert insert message insert) ], 'messages: those outside of transactions come at once');
my @messages = grep { $_->{op} eq 'message' } map { JSON::PP::decode_json($_) } lines_with(messages => 'true');
is_deeply([ map { [ @$_{qw(prefix content)}, $_->{transactional} ? 1 : 0, $_->{seq} ] } @messages ], [ [ 'pre', 'outside', 0, undef ], [ 'pre', 'inside', 1, 3 ] ], 'messages: content and place');
like((lines_with(numeric => 'number'))[0], qr/"price":"NaN"/, 'P24: numeric NaN is a string also among numbers');
like((lines_with(numeric => 'number'))[2], qr/"price":-0\.10,/, 'numeric as number keeps its digits');
like((lines_with(binary => 'hex'))[0], qr/"data":"ff"/, 'binary hex');
like((lines_with(json => 'embed'))[0], qr/"doc":\{"a": \[1(e400|0{400})\], "b": 1\.0\}/, 'json embed: big numbers keep their digits');
like((lines_with())[0], qr/"tags":\[\["1","2"\],\["3","4"\]\]/, 'P30: arrays of several dimensions');
like((lines_with(arrays => 'text'))[2], qr/"tags":"\[2:3\]=\{1,2\}"/, 'arrays text: lower bounds stay');
like((lines_with(include_types => 'on'))[0], qr/"types":\{"id":"integer","name":"text","price":"numeric\(10,2\)","doc":"jsonb","data":"bytea","tags":"text\[\]"\}/, 'include_types');
is_deeply([ map { JSON::PP::decode_json($_)->{key} } lines_with(include_key => 'on', actions => 'insert') ], [ { id => 5 }, { id => 1 }, { id => 6 } ], 'include_key');
is(scalar(lines_with(actions => 'update, delete')), 0, 'actions');
is_deeply([ map { JSON::PP::decode_json($_)->{table} } lines_with(tables => 'public.*') ], ['other'], 'tables: a pattern');
is_deeply([ map { JSON::PP::decode_json($_)->{table} } lines_with(tables => 'sho?.*, !shop.odd*') ], [ qw(t t) ], 'tables: several, some left out');
is_deeply([ map { JSON::PP::decode_json($_)->{table} } lines_with(tables => '!shop.*') ], ['other'], 'tables: all but some');
is(scalar(lines_with(tables => 'shop.T')), 0, 'P33: case counts');
is(scalar(lines_with(tables => 'sho_.%')), 0, 'P33: _ and % are no wildcards');

my @debezium = map { JSON::PP::decode_json($_) } lines_with(format => 'debezium-json', include_transaction => 'true', server_name => 'north');
is_deeply([ map { $_->{status} // $_->{op} } @debezium ], [ qw(BEGIN c c END BEGIN c END) ], 'Debezium: marks');
is_deeply($debezium[1]{transaction}, { id => $debezium[0]{id}, total_order => 1, data_collection_order => 1 }, 'Debezium: place in the transaction');
is_deeply($debezium[2]{transaction}, { id => $debezium[0]{id}, total_order => 2, data_collection_order => 1 }, '... counted by table');
is_deeply([ @{ $debezium[3] }{qw(id event_count data_collections)} ],
	[ $debezium[0]{id}, 2, [ { data_collection => 'shop.t', event_count => 1 }, { data_collection => 'public.other', event_count => 1 } ] ], 'Debezium: END counts');
is($debezium[1]{source}{name}, 'north', 'server_name');

my ($with_schema) = map { JSON::PP::decode_json($_) } lines_with(format => 'debezium-json', schemas => 'true', include_key => 'true');
is_deeply([ map { $_->{field} } @{ $with_schema->{value}{schema}{fields} } ], [ qw(before after source op ts_ms ts_us ts_ns transaction cascade restart_identity partition_of) ], 'schemas: the envelope');
my ($after) = grep { $_->{field} eq 'after' } @{ $with_schema->{value}{schema}{fields} };
is_deeply([ map { [ @$_{qw(field type name)} ] } @{ $after->{fields} } ],
	[ [ 'id', 'int32', undef ], [ 'name', 'string', undef ], [ 'price', 'string', undef ], [ 'doc', 'string', 'io.debezium.data.Json' ], [ 'data', 'bytes', undef ], [ 'tags', 'array', undef ] ], 'schemas: the columns');
is_deeply($with_schema->{key}{payload}, { id => 5 }, 'schemas: the key has one too');
is($with_schema->{value}{payload}{after}{id}, 5, 'schemas: payload');

# ---- P49: changes that came by replication
$postgres->psql(<<'SQL');
select pg_replication_origin_create('elsewhere');
select pg_replication_origin_session_setup('elsewhere');
insert into public.other values (77);
select pg_replication_origin_session_reset();
SQL
my @by_origin = grep { $_->{table} eq 'other' && $_->{row}{id} == 77 } map { JSON::PP::decode_json($_) } lines_with();
is($by_origin[0]{origin}, 'elsewhere', 'P49: the origin of a change is told');
is(scalar(grep { /"id":77/ } lines_with(origin => 'none')), 0, 'P49: origin none leaves out what came by replication');
is(scalar(lines_with(origin => 'none')), 3, 'P49: ... and nothing else');

# ---- what is refused
like($slot->error(tabels => 'a.b'), qr/ERROR:  22023: unrecognized option "tabels" for cdc_bridge output plugin\nHINT:  Valid options are: tables, /, 'an unknown option: valid ones, the nearest first');
like($slot->error(format => 'xml'), qr/22023: invalid value for option "format" of cdc_bridge output plugin: "xml"\nHINT:  Valid values are: canal-json, changelog-json, debezium-avro, debezium-json, debezium-unwrapped-json, json, maxwell-json\./, 'an unknown format');
like($slot->error(streaming => 'perhaps'), qr/Valid values are: true, false/, 'no boolean');
like($slot->error(tables => 'shop'), qr/invalid value for option "tables".*\nHINT:  Give patterns schema\.table/, 'no pattern');
like($slot->error(actions => 'insert,upsert'), qr/invalid value for option "actions".*\nHINT:  Give one or more of insert, update/, 'no action');
like($slot->error(publication_names => ''), qr/invalid value for option "publication_names"/, 'no names');
like($slot->error(publication_names => 'nowhere'), qr/42704: publication "nowhere" does not exist\nHINT:  Use CREATE PUBLICATION nowhere/, 'a publication that is not there');
like($slot->error(format => 'debezium-json', schemas => 'on', numeric => 'number'), qr/options "schemas" and "numeric" do not go together/, 'options that say the opposite');
is(scalar(lines_with()), 4, 'an error takes nothing from the slot');

# ---- a database of another encoding
$postgres->psql(q{create database latin template template0 encoding 'LATIN1' locale 'C'});
like($postgres->psql_error(q{select pg_create_logical_replication_slot('l', 'cdc_bridge')}, database => 'latin'),
	qr/0A000: output plugin "cdc_bridge" needs a database with encoding UTF8\nDETAIL:  The database's encoding is LATIN1/, 'a database of another encoding is refused');
is($postgres->psql(q{select count(*) from pg_replication_slots where slot_name = 'l'}), '0', '... and leaves no slot');

# ---- our own tables are nobody's business
$postgres->psql('create extension cdc_bridge');
$slot->skip;
$postgres->psql(q{insert into cdc_bridge.pipeline (name, owner, tables, created_at) values ('x', current_user::regrole, '{a.b}', now())});
is(scalar($slot->take_lines), 0, 'tables of schema cdc_bridge are not shipped');

# ---- values do not depend on settings of the session
$postgres->psql(q{create table shop.s (id int primary key, f float8, ts timestamptz, r tstzrange, i interval)});
$postgres->psql(q{insert into shop.s values (1, 0.1, '2024-02-29 12:00+00', '[2024-02-29 12:00+00,)', '1 year -2 days')});
my $settings = q{set datestyle = 'German'; set timezone = 'Asia/Tokyo'; set extra_float_digits = -5; set intervalstyle = 'sql_standard';};
my $query = q{select data from pg_logical_slot_peek_changes('a', null, null, 'format', 'json')};
my $text = $postgres->psql("$settings $query");
is($text, $postgres->psql($query), 'whoever reads gets the same text');
like($text, qr/"f":0\.1,"ts":"2024-02-29T12:00:00Z","r":"\[\\"2024-02-29 12:00:00\+00\\",\)","i":"P1Y-2D"/, '... as documented');
is($postgres->psql("$settings begin; select count(*) from ($query) x; show timezone; show datestyle"), "1\nAsia/Tokyo\nGerman, DMY", 'settings of the session are as before');

done_testing();
