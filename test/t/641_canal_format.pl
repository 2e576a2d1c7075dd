# cells: pg15 pg18
# Canal JSON: members of Canal's flat message for rows, TRUNCATE and schema changes; each value a string; what it has no words for.

use strict;
use warnings;

use CdcBridge::Decode;
use CdcBridge::Export;
use CdcBridge::Postgres;
use JSON::PP ();
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres, tables => '{shop.*}', options => '{"format": "canal-json"}')->setup;
$postgres->psql('create schema shop; create table shop.t (id int primary key, ok boolean, price numeric(10,2), at timestamp, big text, raw bytea, list int[], doc jsonb); alter table shop.t alter column big set storage external; insert into shop.t (id) values (7)');
$export->start->wait_for_state('streaming');
my $seen = () = $export->records;
is_deeply([ map { [ @$_{qw(type isDdl)}, $_->{data}, $_->{_cdc_bridge}{snapshot} ] } ($export->records)[0] ],
	[ [ 'INSERT', JSON::PP::false, [ { id => '7', map { $_ => undef } qw(ok price at big raw list doc) } ], JSON::PP::true ] ], 'a copied row is an INSERT');

sub after
{
	$postgres->psql(join('; ', @_));
	$export->wait_for_all;
	my @records = $export->records;
	splice(@records, 0, $seen);
	$seen += @records;
	return @records;
}

my ($insert) = after(q{insert into shop.t values (1, true, 1.50, '2024-02-29 12:00:00.5', repeat('x', 4000), '\x00ff41', '{1,NULL}', '{"a": 1}')});
is(join(' ', sort keys %$insert), '_cdc_bridge data database es id isDdl mysqlType old pkNames sql sqlType table ts type', 'members');
is_deeply([ @$insert{qw(type database table isDdl old pkNames sql)} ], [ 'INSERT', 'shop', 't', JSON::PP::false, undef, ['id'], '' ], 'INSERT: database is the schema');
is_deeply($insert->{data}, [ { id => '1', ok => 'true', price => '1.50', at => '2024-02-29 12:00:00.5', big => 'x' x 4000, raw => "\0\x{ff}A", list => '[1,null]', doc => '{"a": 1}' } ], 'data: one row of strings');
is_deeply([ @{ $insert->{mysqlType} }{qw(id price at)}, @{ $insert->{sqlType} }{qw(id price at ok)} ], [ 'integer', 'numeric(10,2)', 'timestamp without time zone', 4, 2, 93, 16 ], 'types: PostgreSQL\'s, and numbers of java.sql.Types');
cmp_ok(abs($insert->{$_} / 1000 - time()), '<', 600, "$_ is milliseconds") for qw(es ts);
my ($line) = grep { /"type":"INSERT"/ && !/"snapshot"/ } map { split(/\n/, CdcBridge::Env::slurp($_)) } $export->files;
my ($row) = $line =~ /"data":\[(\{.*?\})\],"old"/;
is_deeply([ $row =~ /[{,]"\w+":([^"n])/g ], [], 'each value is written as a string or null');

my ($update, $delete) = after('update shop.t set price = 2 where id = 1', 'delete from shop.t where id = 1');
is_deeply([ $update->{type}, $update->{old}, $update->{data}[0]{price} ], [ 'UPDATE', [ {} ], '2.00' ], 'UPDATE: old is empty where the log has no old row');
ok(!exists $update->{data}[0]{big} && $update->{_cdc_bridge}{unchanged}[0] eq 'big', 'P1: a large value that was not touched is no NULL, and is named');
is_deeply([ $delete->{type}, $delete->{data}, $delete->{old} ], [ 'DELETE', [ { id => '1' } ], undef ], 'DELETE: data is what the log has');
my @full = after('alter table shop.t replica identity full', q{insert into shop.t values (1, true, 1, null, 'b', null, '{1}', null)}, q{update shop.t set id = 2, price = null, list = '{2}', at = '2024-01-01' where id = 1}, 'delete from shop.t where id = 2');
is_deeply([ $full[2]{old}, $full[3]{data}[0]{big} ], [ [ { id => '1', price => '1.00', list => '[1]', at => undef } ], 'b' ], 'under REPLICA IDENTITY FULL: old has what changed and no more, data of DELETE is the row');

my @ddl = after('create table shop.n (a int primary key)', 'alter table shop.n add column b text', 'alter table shop.n rename to m', 'truncate shop.m', 'drop table shop.m');
is_deeply([ map { [ @$_{qw(type table)}, $_->{isDdl} ? 1 : 0, $_->{data} ] } @ddl ], [ map { [ @$_, 1, undef ] } [qw(CREATE n)], [qw(ALTER n)], [qw(RENAME m)], [qw(TRUNCATE m)], [qw(ERASE m)] ], 'P23: schema changes and TRUNCATE');
is_deeply([ $ddl[1]{mysqlType}, $ddl[1]{pkNames} ], [ { a => 'integer', b => 'text' }, ['a'] ], 'a schema change tells the definition that it made');

# ---- by a reader of the slot
my $slot = CdcBridge::Decode->new($postgres, 'a', format => 'canal-json', messages => 'on', include_transaction => 'on', include_key => 'on');
$postgres->psql(q{begin; select pg_logical_emit_message(true, 'foo', 'bar'); insert into shop.t (id, raw) values (9, '\xff'); commit});
my @got = $slot->peek;
is_deeply([ map { $_->{value}{op} // $_->{value}{type} } @got ], [ qw(begin message INSERT commit) ], 'what Canal has no words for comes in ours, when it is asked for');
is_deeply([ $got[2]{key}, $got[1]{key} ], [ { id => '9' }, undef ], 'keys');
is_deeply([ map { $_->{value}{data}[0]{raw} } grep { $_->{value}{data} } $slot->peek(binary => 'base64') ], ['/w=='], 'bytea as another option has it');
$export->drop;
done_testing();
