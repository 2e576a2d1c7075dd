# Tables that get other names at the source: one by one, in lists, swaps, across databases, into the patterns and out of them, and as tools
# for online schema changes do it.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup;
sub settle { $pipeline->wait_for_catchup->wait_for_state('streaming')->wait_for_tables->wait_for_catchup; return $pipeline; }
sub places { return $postgres->psql(q{select string_agg(source_schema || '.' || source_table || '>' || target_schema || '.' || target_table, ' ' order by source_schema, source_table) from pg_stat_cdc_table where state = 'streaming'}); }
sub rows { my ($table) = @_; return $postgres->psql("select coalesce(string_agg(id || '=' || v, ' ' order by id), '') from $table"); }
sub copies { my ($table) = @_; my $n = () = $postgres->log_text =~ /source table "\Q$table\E" of pipeline "shop_in" (?:is copied anew|joins)|"\Q$table\E" joins pipeline/g; return $n; }
sub commands { my ($where) = @_; return $postgres->psql("select string_agg(array_to_string(commands, '; '), '; ' order by change_no) from cdc_schema_history where $where"); }

$source->sql('create database shop', 'create database depot', 'create database other', map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, ascii('$_')), (2, 2)") } qw(a b c swap1 swap2));
# without a target schema, so that moves between databases move something here
$postgres->psql(q{select cdc_start_pipeline('shop_in', source => 'shop', tables => '{shop.*,depot.*,!shop.private*}', options => '{"batch_max_ms": 0}')});
$pipeline->wait_for_state('streaming')->wait_for_tables;
$postgres->psql('create view on_a as select * from shop.a');

# ---- D5: one table, its rows before and after
$source->sql('insert into shop.a values (3, 3)', 'rename table shop.a to shop.aa', 'insert into shop.aa values (4, 4)', 'alter table shop.b rename to shop.bb', 'insert into shop.bb values (4, 4)');
settle();
like(places(), qr/^shop\.aa>shop\.aa shop\.bb>shop\.bb shop\.c>shop\.c /, 'D5: tables and targets have their new names');
is(rows('shop.aa'), '1=97 2=2 3=3 4=4', 'D5: RENAME TABLE: rows of before and after');
is(rows('shop.bb'), '1=98 2=2 4=4', 'D5: ALTER TABLE ... RENAME TO');
is(rows('on_a'), rows('shop.aa'), 'a view goes on');
is(commands(q{source_table = 'a'}), 'ALTER TABLE shop.a RENAME TO aa', 'what was run is noted');
is(copies('shop.aa') + copies('shop.bb'), 0, 'nothing is copied for it');
# ---- a swap in one statement, and a cycle that ends as it began
$source->sql('rename table shop.swap1 to shop.t, shop.swap2 to shop.swap1, shop.t to shop.swap2', 'insert into shop.swap1 values (7, 7)', 'insert into shop.swap2 values (8, 8)');
settle();
is(rows('shop.swap1'), '1=115 2=2 7=7', 'D5: a swap') or diag($pipeline->describe);
is(rows('shop.swap2'), '1=115 2=2 8=8', 'D5: both ways');
$pipeline->is_same('D5: as the source has them', 'swap1', 'swap2', 'aa', 'bb', 'c');
$source->sql('rename table shop.c to shop.x, shop.x to shop.c', 'update shop.c set v = 9');
settle();
is(rows('shop.c'), '1=9 2=9', 'D5: there and back');
# ---- across databases
$source->sql('rename table shop.c to depot.c', 'insert into depot.c values (5, 5)', 'rename table shop.bb to depot.bb, depot.bb to depot.b2, shop.aa to shop.bb', 'update shop.bb set v = 0');
settle();
is(places(), 'depot.b2>depot.b2 depot.c>depot.c shop.bb>shop.bb shop.swap1>shop.swap1 shop.swap2>shop.swap2', 'D5: into another database, whose schema is made');
is(rows('depot.c') . ' ' . rows('depot.b2') . ' ' . rows('shop.bb'), '1=9 2=9 5=5 1=98 2=2 4=4 1=0 2=0 3=0 4=0', 'D5: with their rows');

# ---- out of the patterns, and into them
$source->sql('rename table depot.c to other.c', 'insert into other.c values (100, 100)', 'create table other.n (id int primary key, v int)', 'insert into other.n values (1, 1)', 'rename table other.n to shop.n', 'insert into shop.n values (2, 2)',
	'rename table depot.b2 to shop.private_b');
settle();
is(places(), 'shop.bb>shop.bb shop.n>shop.n shop.swap1>shop.swap1 shop.swap2>shop.swap2', 'out of the patterns a table leaves, into them it joins');
is(rows('depot.c') . ' ' . rows('shop.n'), '1=9 2=9 5=5 1=1 2=2', 'the target that was left stays as it is; the new one has its rows');
is($postgres->psql(q{select error from cdc_schema_history where source_table = 'c' and kinds = '{rename_table}' order by change_no desc limit 1}), 'its new name "other.c" is not one of the pipeline\'s', 'the history says why');
# one of ours takes the name of another that leaves
$source->sql('rename table shop.swap1 to other.swap1, shop.swap2 to shop.swap1', 'insert into shop.swap1 values (9, 9)');
settle();
is(rows('shop.swap1'), '1=115 2=2 8=8 9=9', 'a table that takes the name of one that leaves') or diag($pipeline->describe);
is($postgres->psql(q{select count(*) from pg_class where relname = 'swap2'}), '0', 'has its target\'s name too');
is(rows('other.swap1'), '1=115 2=2 7=7', 'and the other target made room') or diag($pipeline->describe);
# rotation: the old one stays, a new one comes
$source->sql('create table shop.log_new (id int primary key, v int)', 'insert into shop.log_new values (1, 1)');
settle();
$source->sql('rename table shop.bb to shop.bb_2024, shop.log_new to shop.bb', 'insert into shop.bb values (2, 2)', 'insert into shop.bb_2024 values (50, 50)');
settle();
is(rows('shop.bb') . ' / ' . rows('shop.bb_2024'), '1=1 2=2 / 1=0 2=0 3=0 4=0 50=50', 'rotation: both are followed under their new names');

# ---- a name here that somebody has
$postgres->psql('create table shop.taken (x int)');
$source->sql('rename table shop.n to shop.taken', 'insert into shop.bb values (3, 3)');
$pipeline->wait_for_catchup->wait_for_table_state('taken', 'stopped');
like($pipeline->table_status('taken', 'last_error'), qr/relation "taken" already exists/, 'a name that is taken here stops the table');
is(rows('shop.bb'), '1=1 2=2 3=3', 'and no other');
$postgres->psql(q{drop table shop.taken; select cdc_resync_table('shop_in', 'shop.taken')});
settle();
is(rows('shop.n'), '1=1 2=2', 'a new copy mends it');

# ---- two tables that would go to one target
$source->sql('create table shop.clash1 (id int primary key, v int)', 'create table shop.clash2 (id int primary key, v int)', 'insert into shop.clash1 values (1, 1)');
settle();
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"routes": [{"source": "shop.clash3", "table": "clash1"}]}')});
settle();
$source->sql('rename table shop.clash2 to shop.clash3', 'insert into shop.clash1 values (2, 2)');
$pipeline->wait_for_catchup->wait_for_table_state('clash3', 'stopped');
is($pipeline->table_status('clash3', q{last_error || ' ' || last_error_detail}), 'target table "shop.clash1" belongs to another source table Source table "shop.clash1" of this pipeline goes there, and "shop.clash3" would.', 'a clash by a new name is told with both');
is(rows('shop.clash1'), '1=1 2=2', 'and harms nobody');
# the same, where the table goes on without the other name here
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"schema_changes": "try_evolve"}')});
settle();
$source->sql('create table shop.clash4 (id int primary key, v int)', 'drop table shop.clash3');
settle();
$source->sql('rename table shop.clash4 to shop.clash3', 'insert into shop.clash3 values (3, 3)');
settle();
is($postgres->psql(q{select target_table || ' ' || state from pg_stat_cdc_table where source_table = 'clash3'}), 'clash4 streaming', 'try_evolve: it is followed, and its target keeps its name') or diag($pipeline->describe);
is(rows('shop.clash4'), '3=3', 'with its rows');
is($postgres->psql(q{select result || ' ' || error_sqlstate from cdc_schema_history where source_table = 'clash4' and kinds = '{rename_table}'}), 'failed 55000', 'try_evolve: noted as failed');
$source->sql('drop table shop.clash1, shop.clash3');
settle();
is($postgres->psql(q{select count(*) from pg_class where relname in ('clash1', 'clash4')}), '2', 'try_evolve: targets of dropped tables stay');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"routes": null, "schema_changes": null}')});
settle();

# ---- D6: gh-ost
sub gh_ost
{
	my ($table, $alter, %option) = @_;
	$source->sql("create table shop._${table}_ghc (id bigint auto_increment primary key, hint varchar(64) charset ascii, value varchar(4096) charset ascii)", "create table shop._${table}_gho like shop.$table",
		"alter table shop._${table}_gho $alter", "insert into shop._${table}_ghc (hint, value) values ('state', 'on')");
	$source->sql("insert ignore into shop._${table}_gho (id, v) (select id, v from shop.$table)");
	return if $option{abort};
	$source->sql("create table shop._${table}_del (id int primary key) comment='ghost-cut-over-sentry'", "drop table shop._${table}_del",
		"rename table shop.$table to shop._${table}_del, shop._${table}_gho to shop.$table");
	$source->sql("drop table shop._${table}_ghc", "drop table shop._${table}_del");
	return;
}
my $before = copies('shop.bb');
gh_ost('bb', 'add key (v)', abort => 1);
settle();
is(places(), 'shop.bb>shop.bb shop.bb_2024>shop.bb_2024 shop.swap1>shop.swap1 shop.taken>shop.n', 'D6: helper tables of gh-ost do not join by a wildcard');
$source->sql('drop table shop._bb_ghc', 'drop table shop._bb_gho');
gh_ost('bb', 'add key (v)');
$source->sql('insert into shop.bb values (10, 10)');
settle();
is(rows('shop.bb'), '1=1 2=2 3=3 10=10', 'D6: gh-ost after one that was broken off');
is(copies('shop.bb') - $before, 1, 'D6: the table was copied anew');
gh_ost('bb', 'add key k2 (v, id)');
$source->sql('update shop.bb set v = v + 1 where id = 10');
settle();
$pipeline->is_same('D6: a second run right after', 'bb');
like($postgres->psql(q{select error from cdc_schema_history where source_table = 'bb' and kinds = '{rename_table}' order by change_no desc limit 1}), qr/another table has the name: it is copied anew/, 'D6: and the history says so');
# ---- pt-online-schema-change, and a cut-over in two statements
$source->sql('create table shop._bb_new like shop.bb', 'alter table shop._bb_new add key k3 (v)', 'insert into shop._bb_new select * from shop.bb', 'rename table shop.bb to shop._bb_old, shop._bb_new to shop.bb', 'drop table shop._bb_old', 'insert into shop.bb values (11, 11)');
settle();
is(rows('shop.bb'), '1=1 2=2 3=3 10=11 11=11', 'D6: pt-online-schema-change');
$source->sql('create table shop._bb_gho like shop.bb', 'insert into shop._bb_gho select * from shop.bb', 'rename table shop.bb to shop._bb_del', 'rename table shop._bb_gho to shop.bb', 'drop table shop._bb_del', 'insert into shop.bb values (12, 12)');
settle();
is(rows('shop.bb'), '1=1 2=2 3=3 10=11 11=11 12=12', 'D6: a cut-over in two statements');
# ---- the shadow is trusted
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"online_schema_change": "follow"}')});
settle();
$before = copies('shop.bb');
gh_ost('bb', 'add key k4 (v)');
$source->sql('insert into shop.bb values (13, 13)');
settle();
is(rows('shop.bb'), '1=1 2=2 3=3 10=11 11=11 12=12 13=13', 'D6: online_schema_change "follow": the same rows go on');
is(copies('shop.bb') - $before, 0, 'D6: nothing was copied');
# ---- a helper that a pattern names is mirrored
$source->sql('create table shop._bb_old (id int primary key, v int)', 'insert into shop._bb_old values (1, 1)');
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.\_bb_old')});
settle();
is(rows('shop._bb_old'), '1=1', 'D6: a helper that the list names is a table like any other');

# ---- what the options leave out: the rows go on, the name here stays
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"schema_changes_exclude": ["rename_table"]}')});
settle();
$source->sql('rename table shop.bb to shop.renamed', 'insert into shop.renamed values (20, 20)');
settle();
is($postgres->psql(q{select target_table from pg_stat_cdc_table where source_table = 'renamed'}), 'bb', 'excluded: the target keeps its name');
is($postgres->psql('select v from shop.bb where id = 20'), '20', 'and gets the rows');

is($postgres->psql(q{select count(*) from pg_class where relname like 'cdc\_re%'}), '0', 'no name of the way is left');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
