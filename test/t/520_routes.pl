# Option routes: the examples of docs/routes.md, clashes, long names, names with odd characters, later changes.
# cells: mariadb-15 mysql-18

use strict;
use warnings;
use utf8;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Rules qw(route_examples);
use CdcBridge::Source;
use Encode qw(encode_utf8);
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup;
sub quote { return CdcBridge::Pipeline::quote($_[0]); }
sub places
{
	my ($name) = @_;
	return $postgres->psql(qq{select string_agg(source_schema || '.' || source_table || '>' || target_schema || '.' || target_table, ' ' order by source_schema collate "C", source_table collate "C") from pg_stat_cdc_table where pipeline = '$name'});
}

# ---- the examples of the documentation, as cdc_check_pipeline() tells them before the start
my @examples = route_examples();
cmp_ok(scalar(@examples), '>', 8, 'the documentation has examples');
my %table = map { ($_->[1] => 1) } @examples;
$source->sql('create database shop_eu');
$source->sql(encode_utf8('create table ' . join('.', map { "`$_`" } split(/\./)) . ' (id int primary key, v int)')) for sort keys %table;
for my $example (@examples)
{
	my ($rule, $table, $target) = map { encode_utf8($_) } @$example;
	$postgres->psql("select cdc_create_pipeline('example', source => 'shop', tables => " . quote("{\"$table\"}") . ', options => ' . quote("{\"routes\": [$rule]}") . ')');
	is($postgres->psql(q{select detail from cdc_check_pipeline('example') where "check" = 'routes'}), "Where tables go: $table -> $target.", "docs: $rule sends $table to $target");
	$postgres->psql(q{select cdc_drop_pipeline('example')});
}

# ---- names that PostgreSQL cannot hold (D17), and characters that mean something elsewhere (R7)
my $long = 'a' x 63;
my $wide = 'ü' x 40;
$source->sql('create database names', map { encode_utf8("create table names.`$_` (id int primary key, v int)") }
	"${long}1", "${long}2", $wide, 'dot.ted', 'sp ace', 'o_1', 'ox1', 'back\\');
$source->sql(encode_utf8("insert into names.`$_` values (1, 1)")) for "${long}1", "${long}2", $wide, 'dot.ted', 'sp ace', 'o_1', 'ox1', 'back\\';
$postgres->psql(q{select cdc_start_pipeline('names_in', source => 'shop', tables => '{names.*}', options => '{"routes": [{"source": "names.o_1", "schema": "under"}, {"source": "names.dot\\\\.ted", "table": "dotted"}, {"source": "names.* *", "table": "$1-$2"}, {"source": "*.o_1", "table": "wrong"}]}')});
$pipeline->{name} = 'names_in';
$pipeline->wait_for_state('streaming')->wait_for_tables;
is($postgres->psql(q{select count(*), count(distinct target_table), max(octet_length(target_table)) from pg_stat_cdc_table where state = 'streaming' and octet_length(source_table) > 63}), '3|3|63', 'D17: tables with names of 64 characters, or 80 bytes, have three targets')
  or diag($pipeline->describe);
is($postgres->psql(q{select target_table ~ '^a{54}_[0-9a-f]{8}$' from pg_stat_cdc_table where source_table like 'aaa%' group by 1}), 't', 'D17: the name is cut and ends with a hash');
is($postgres->psql(encode_utf8(q{select target_table ~ '^ü{27}_[0-9a-f]{8}$' from pg_stat_cdc_table where source_table like 'üü%'})), 't', 'D17: it is cut between two characters');
like($postgres->log_text, qr/target of source table "names\.${long}1" of pipeline "names_in" is called "names\.a{54}_[0-9a-f]{8}"/, 'D17: the log says so');
is($postgres->psql(q{select string_agg(target_schema || '.' || target_table, ' ' order by target_table) from pg_stat_cdc_table where octet_length(source_table) < 63}), 'names.back\ names.dotted under.o_1 names.ox1 names.sp-ace', 'R7: the first that fits decides, "_" is no wildcard, a dot is told by a backslash, spaces count');
$source->sql(encode_utf8("insert into names.`$_` values (2, 2)"), encode_utf8("update names.`$_` set v = 3 where id = 1")) for "${long}1", "${long}2", $wide, 'dot.ted', 'sp ace', 'o_1', 'back\\';
$pipeline->wait_for_catchup;
my @rows = map { $postgres->psql("select string_agg(id || '=' || v, ' ' order by id) from $_") }
  split(/\n/, $postgres->psql(q{select format('%I.%I', target_schema, target_table) from pg_stat_cdc_table where source_table <> 'ox1'}));
is_deeply(\@rows, [ ('1=3 2=2') x 7 ], 'D17, R7: all of them are followed');
$postgres->psql(q{select cdc_stop_pipeline('names_in')});
$pipeline->wait_for_state('stopped');
$postgres->psql(q{select cdc_drop_pipeline('names_in')});

# ---- two tables, one target
$source->sql('create database s1', 'create database s2', map { ("create table $_.t (id int primary key)", "insert into $_.t values (1)") } qw(s1 s2));
my $merge = '{"routes": [{"source": "s?.*", "schema": "all_of", "table": "$2"}]}';
$postgres->psql("select cdc_create_pipeline('clash_in', source => 'shop', tables => '{s1.*,s2.*}', options => " . quote($merge) . ')');
is($postgres->psql(q{select status, detail from cdc_check_pipeline('clash_in') where "check" = 'routes' and status = 'error'}),
	'error|Source tables "s1.t" and "s2.t" both go to "all_of.t"; the one that comes later stops.', 'a clash is told before the start');
$postgres->psql(q{select cdc_start_pipeline('clash_in')});
$pipeline->{name} = 'clash_in';
$pipeline->wait_for_state('streaming')->wait_for_tables;
is($postgres->psql(q{select source_schema, state from pg_stat_cdc_table where pipeline = 'clash_in' order by 1}), "s1|streaming\ns2|stopped", 'the later one is stopped');
is($postgres->psql(q{select last_error || ' ' || last_error_detail from pg_stat_cdc_table where pipeline = 'clash_in' and state = 'stopped'}),
	'target table "all_of.t" belongs to another source table Source table "s1.t" of this pipeline goes there, and "s2.t" would.', 'with both names');

# ---- later changes: tables that have a target stay, those that have none and those that join later go elsewhere
$postgres->psql(q{select cdc_alter_pipeline('clash_in', options => '{"routes": [{"source": "*.*", "schema": "later", "table": "$1_$2"}]}'); select cdc_resync_table('clash_in', 's2.t')});
$pipeline->wait_for_state('streaming')->wait_for_tables;
$source->sql('create database s3', 'create table s3.u (id int primary key)', 'insert into s3.u values (1), (2)');
$postgres->psql(q{select cdc_add_table('clash_in', 's3.*')});
$pipeline->wait_for_table_state('u', 'streaming');
is(places('clash_in'), 's1.t>all_of.t s2.t>later.s2_t s3.u>later.s3_u', 'other routes count for tables that have no target yet, and for those that join');
$source->sql('insert into s1.t values (5)', 'insert into s2.t values (6), (7)');
$pipeline->wait_for_catchup;
is($postgres->psql('select (select count(*) from all_of.t), (select count(*) from later.s2_t), (select count(*) from later.s3_u)'), '2|3|2', 'each has its own rows');

# ---- a restored dump goes where the tables went
my $dump = $postgres->psql(q{select string_agg(target_schema || '.' || target_table, ' ' order by 1) from (select * from cdc_bridge.pipeline_table order by source_schema) t});
is($dump, 'all_of.t later.s2_t later.s3_u', 'what is dumped has the targets');

# ---- a name that the system has
$source->sql('create database cdc_bridge', 'create table cdc_bridge.pipeline (id int primary key)');
$postgres->psql(q{select cdc_alter_pipeline('clash_in', options => '{"routes": null}'); select cdc_add_table('clash_in', '*.pipeline')});
$pipeline->wait_for_table_state('pipeline', 'stopped');
is($pipeline->table_status('pipeline', 'last_error'), 'source table "cdc_bridge.pipeline" cannot go to "cdc_bridge.pipeline"', 'no table goes into a schema of the system');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
