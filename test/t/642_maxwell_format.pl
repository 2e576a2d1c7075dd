# cells: pg15 pg18
# Maxwell JSON: members of rows and schema changes, keys as its producer for Kafka makes them, values as Maxwell has them.

use strict;
use warnings;

use CdcBridge::Decode;
use CdcBridge::Export;
use CdcBridge::Postgres;
use JSON::PP ();
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres, tables => '{shop.*}', options => '{"format": "maxwell-json"}')->setup;
$postgres->psql('create schema shop; create table shop.e (id int, m float8, c timestamptz, "note-2" text, price numeric, doc jsonb, raw bytea, primary key (id, "note-2")); insert into shop.e (id, "note-2") values (7, $$old$$)');
$export->start->wait_for_state('streaming');
my $slot = CdcBridge::Decode->new($postgres, 'a', format => 'maxwell-json', include_key => 'on', messages => 'on', include_transaction => 'on');
is_deeply([ map { [ @$_{qw(type database table xid)}, $_->{data}{id}, $_->{_cdc_bridge}{snapshot} ] } ($export->records)[0] ], [ [ 'insert', 'shop', 'e', undef, 7, JSON::PP::true ] ], 'a copied row is an insert');

$postgres->psql(q{begin; insert into shop.e values (1, 4.2341, '2016-10-21 05:33:37.523+00', 'light', 12.50, '{"a": [1, null]}', '\x01ff'); update shop.e set m = 5.444 where id = 1; commit;
	alter table shop.e replica identity full; update shop.e set m = 'NaN', price = 'NaN', doc = null where id = 1; delete from shop.e where id = 1});
$export->wait_for_all;
my (undef, $insert, $update, $alter, $full, $delete) = $export->records;
is(join(' ', sort keys %$insert), '_cdc_bridge data database position table ts type xid xoffset', 'insert: members');
is(join(' ', sort keys %$update), '_cdc_bridge data database old position table ts type xid xoffset', 'update: and old');
is_deeply($insert->{data}, { id => 1, m => 4.2341, c => '2016-10-21 05:33:37.523Z', 'note-2' => 'light', price => 12.5, doc => { a => [ 1, undef ] }, raw => 'Af8=' }, 'values: JSON is embedded, bytes are base64, times as SQL writes them');
my ($line) = grep { /"type":"insert"/ && /"light"/ } map { split(/\n/, CdcBridge::Env::slurp($_)) } $export->files;
like($line, qr/"price":12\.50,/, 'P25: numeric is a number, with its digits');
cmp_ok(abs($insert->{ts} - time()), '<', 600, 'ts are seconds');
is_deeply([ $insert->{xoffset}, $update->{xoffset}, $insert->{xid} == $update->{xid} ? 1 : 0 ], [ 0, 1, 1 ], 'xid and xoffset: places in the transaction');
like($insert->{position}, qr{^[0-9A-F]+/[0-9A-F]+$}, 'position');
is_deeply([ $update->{old}, $full->{old} ], [ {}, { m => 5.444, price => 12.5, doc => { a => [ 1, undef ] } } ], 'old: what changed, as far as the log has it');
is_deeply([ @{ $full->{data} }{qw(m price)} ], [ 'NaN', 'NaN' ], 'P24: NaN is a string also among numbers');
is_deeply([ $delete->{type}, $delete->{data}{'note-2'} ], [ 'delete', 'light' ], 'delete: data is the old row');
is_deeply([ @$alter{qw(type database table sql)}, $alter->{def}{'primary-key'} ], [ 'table-alter', 'shop', 'e', '', [ 'id', 'note-2' ] ], 'table-alter');
is_deeply([ map { "$_->{name} $_->{type}" } @{ $alter->{def}{columns} } ], [ 'id integer', 'm double precision', 'c timestamp with time zone', 'note-2 text', 'price numeric', 'doc jsonb', 'raw bytea' ], 'def: columns');

my @got = $slot->take;
is_deeply([ map { $_->{key} } grep { ($_->{value}{type} // '') eq 'insert' } @got ], [ { database => 'shop', table => 'e', 'pk.id' => 1, 'pk.note-2' => 'light' } ], 'the key');
is_deeply([ map { $_->{value}{op} } grep { $_->{value}{op} } @got ], [ qw(begin commit begin commit begin commit) ], 'marks of transactions are in our words, when they are asked for');
$postgres->psql(q{create table shop.n (a int); alter table shop.n rename to k; drop table shop.k; truncate shop.e});
$export->wait_for_all;
my @ddl = ($export->records)[ 6 .. 9 ];
is_deeply([ map { $_->{type} // $_->{op} } @ddl ], [ qw(table-create table-alter table-drop truncate) ], 'P23: schema changes, and TRUNCATE in our words');
is_deeply([ $ddl[1]{old}, $ddl[1]{def}{table} ], [ { database => 'shop', table => 'n' }, 'k' ], 'a table that was renamed');
cmp_ok(abs($ddl[0]{ts} / 1000 - time()), '<', 600, 'ts of a schema change are milliseconds');
$export->drop;
done_testing();
