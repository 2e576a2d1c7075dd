# Option routes of outgoing pipelines and of the output plugin: names in records of rows, of a copy and of definitions; two tables under one name.
# cells: pg15 pg18

use strict;
use warnings;
use utf8;

use CdcBridge::Decode;
use CdcBridge::Env qw(poll_until);
use CdcBridge::Export;
use CdcBridge::Postgres;
use CdcBridge::Rules qw(route_examples);
use Encode qw(encode_utf8);
use JSON::PP ();
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $routes = '[{"source": "shop.orders_*", "schema": "lake", "table": "o_$1"}, {"source_regex": "shop\\\\.(item)", "schema": "$schema", "table": "$1s"}]';
my $export = CdcBridge::Export->new(postgres => $postgres, options => "{\"routes\": $routes}")->setup;
sub name { my ($record) = @_; return "$record->{source}{schema}.$record->{source}{table}"; }

# ---- the examples of the documentation, which incoming pipelines run too (520)
my @examples = route_examples();
cmp_ok(scalar(@examples), '>', 8, 'the documentation has examples');
my %table = map { ($_->[1] => 1) } @examples;
$postgres->psql('create schema shop_eu');
$postgres->psql(encode_utf8('create table ' . join('.', map { "\"$_\"" } split(/\./)) . ' (id int primary key)')) for sort keys %table;
my $slot = CdcBridge::Decode->new($postgres, 'routed', format => 'json');
$postgres->psql(encode_utf8('insert into ' . join('.', map { "\"$_\"" } split(/\./)) . ' values (1)')) for sort keys %table;
for my $example (@examples)
{
	my ($rule, $table, $target) = @$example;
	my @lines = $slot->peek_lines(routes => encode_utf8("[$rule]"), tables => encode_utf8($table));
	my $record = JSON::PP->new->utf8->decode($lines[0] // '{}');
	is(encode_utf8(($record->{schema} // '') . '.' . ($record->{table} // '')), encode_utf8($target), encode_utf8("docs: $rule ships $table as $target"));
}
like($slot->error(routes => 'nothing'), qr/invalid value for option "routes" of cdc_bridge output plugin/, 'routes that are no JSON');
like($slot->error(routes => '[{"source": "*.*", "colour": "red"}]'), qr/invalid member 1 of option "routes"/, 'a member that does not exist');
like($slot->error(routes => '[{"source": "*.*", "schema": "pg_x"}]'), qr/table shop_eu\.\S+ cannot be shipped as pg_x/, 'a schema of the system');
$slot->drop;

# ---- refused before anything runs
$postgres->psql(<<'SQL');
create schema shop;
create table shop.orders_eu (id int primary key, name text);
create table shop.orders_us (id int primary key, name text);
create table shop.item (id int primary key);
insert into shop.orders_eu select i, 'before' from generate_series(1, 10) i;
SQL
my $merge = '{"routes": [{"source": "shop.orders_*", "table": "orders"}]}';
my $error = $postgres->psql_error("select cdc_create_pipeline('merged', sink => 'files', tables => '{shop.*}', options => '$merge')");
like($error, qr/tables shop\.orders_us and shop\.orders_eu would both be shipped as shop\.orders|tables shop\.orders_eu and shop\.orders_us would both be shipped as shop\.orders/, 'R1: two tables under one name are refused');
like($postgres->psql_error(q{select cdc_create_pipeline('bad', sink => 'files', tables => '{shop.*}', options => '{"routes": [{"source": "shop"}]}')}), qr/invalid member 1 of option "routes"/, 'a pattern that is none');

# ---- rows, copied and changed, and definitions
$export->start->wait_for_state('streaming');
$postgres->psql("insert into shop.orders_eu values (11, 'new'); update shop.orders_eu set name = 'changed' where id = 1; delete from shop.orders_eu where id = 2; insert into shop.item values (1)");
$postgres->psql('truncate shop.orders_us');
$postgres->psql('alter table shop.orders_us rename to orders_uk');
$postgres->psql('alter table shop.orders_uk rename to elsewhere');
$postgres->psql('drop table shop.elsewhere');
$export->wait_for_all;
my @records = $export->records;
is_deeply([ sort keys %{ { map { (name($_) => 1) } grep { $_->{op} && $_->{op} ne 't' } @records } } ], [ 'lake.o_eu', 'shop.items' ], 'rows have the names that routes say');
my %rows = $export->replay('lake', 'o_eu', 'id');
is(join(' ', map { "$_=$rows{$_}{name}" } grep { $_ < 3 || $_ > 10 } sort { $a <=> $b } keys %rows), '1=changed 11=new', 'and are those of the table');
is(scalar(keys %rows), 10, 'all of them');
is(join(' ', map { name($_) } grep { ($_->{op} // '') eq 't' } @records), 'lake.o_us', 'TRUNCATE has the name too');
my @schema = map { s/"(postgres"\.")?//gr } map { my $t = $_->{tableChanges}[0]; "$t->{type} $t->{id}" . ($t->{previousId} ? " from $t->{previousId}" : '') } grep { $_->{tableChanges} } @records;
is_deeply(\@schema, [ 'ALTER lake.o_uk from lake.o_us', 'ALTER shop.elsewhere from lake.o_uk', 'DROP shop.elsewhere' ],
	'definitions have it, also that of before');

# ---- a table that is made later, under a name that is taken
$postgres->psql('create table shop.items (id int primary key)');
$postgres->psql('insert into shop.items values (7)');
$postgres->poll("select max(last_error_sqlstate) from pg_stat_cdc_export_table where state = 'stopped'", '42P07', 30) or die "none stops\n" . $export->describe;
like($postgres->psql("select last_error from pg_stat_cdc_export_table where last_error_sqlstate = '42P07'"), qr/tables shop\.items? and shop\.items? would both be shipped as shop\.items/, 'R1: a table that comes to have the name of another one is not shipped');
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"routes": [{"source": "shop.items", "table": "things"}, {"source": "shop.item", "table": "items"}, {"source": "shop.orders_*", "schema": "lake", "table": "o_$1"}]}')});
$postgres->psql("select cdc_resync_table('shop_out', table_schema || '.' || table_name) from pg_stat_cdc_export_table where state = 'stopped'");
$export->wait_for_state('streaming')->wait_for_all;
$postgres->poll("select bool_and(state = 'streaming') from pg_stat_cdc_export_table", 't', 30) or die "they are not copied\n" . $export->describe;
is(scalar(grep { ($_->{op} // '') =~ /[cr]/ && name($_) eq 'shop.things' && $_->{after}{id} == 7 } $export->records), 1, 'with another name it is');
$postgres->psql('insert into shop.orders_eu values (12, \'later\')');
$export->wait_for_all;
is(scalar(grep { ($_->{op} // '') eq 'c' && name($_) eq 'lake.o_eu' } $export->records), 2, 'and the others go on');

# ---- a table that takes the routed name of one that was dropped in the middle of its copy
$postgres->psql("create table shop.orders_2023 (id int primary key, name text); insert into shop.orders_2023 select i, repeat('x', 500) from generate_series(1, 20000) i");
my $year = CdcBridge::Export->new(postgres => $postgres, name => 'year_out', server => 'files', dir => $export->{dir}, tables => '{shop.orders_20*}',
	options => '{"snapshot_chunk_rows": 10, "snapshot_workers": 1, "routes": [{"source": "shop.orders_20*", "table": "orders"}]}');
$year->start;
$postgres->poll("select rows_copied > 0 and state = 'snapshot' from pg_stat_cdc_export_table where pipeline = 'year_out'", 't', 30) or die "it is not copied\n";
$postgres->psql("drop table shop.orders_2023; create table shop.orders_2024 (id int primary key, name text); insert into shop.orders_2024 values (1, 'of 2024')");
$year->wait_for_state('streaming')->wait_for_all;
%rows = $year->replay('shop', 'orders', 'id');
is(join(' ', map { "$_=$rows{$_}{name}" } sort keys %rows), '1=of 2024', 'a successor of the routed name: what came of the former table is taken back before its first row');

done_testing();
