# Option transforms: the examples of docs/transforms.md; what is refused, and with which words; expressions that throw, which stop their table or
# make a dead letter of the one change; images in part; targets of another owner, and views.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Rules qw(transform_examples);
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup;
sub quote { return CdcBridge::Pipeline::quote($_[0]); }

# A pipeline over some tables with these rules.
sub make
{
	my ($name, $tables, $rules, %option) = @_;
	my $options = join(', ', qq("transforms": [$rules]), map { qq("$_": "$option{$_}") } grep { $_ ne 'schema' } sort keys %option);
	$postgres->psql("select cdc_create_pipeline('$name', source => 'shop', tables => '{$tables}', target_schema => '" . ($option{schema} // $name) . "', options => " . quote("{$options}") . ')');
	$pipeline->{name} = $name;
	return;
}
sub run
{
	my ($name, @more) = @_;
	make($name, @more);
	$postgres->psql("select cdc_start_pipeline('$name')");
	$pipeline->wait_for_state(qr/^(streaming|failed)$/);
	return $pipeline->wait_for_tables;
}

# ---- the examples of the documentation
open(my $in, '<', 'docs/transforms.md') or die "docs/transforms.md: $!";
my $doc = do { local $/; <$in> };
my ($made) = $doc =~ /^The source has\n\n```sql\n(.*?)^```/ms;
$source->sql('create database shop', sprintf("grant lock tables on shop.* to '%s'\@'%%'", $source->user), grep { /\S/ } split(/;\n/, $made));
my @examples = transform_examples();
cmp_ok(scalar(@examples), '>=', 4, 'the documentation has examples');
for my $i (0 .. $#examples)
{
	my $name = "example$i";
	my ($rule, $header, @rows) = @{ $examples[$i] };
	run($name, 'shop.orders', $rule);
	is($postgres->psql("select * from $name.orders order by " . ($header =~ /^(\w+\|)?id\b/ ? 'id' : '2')), join("\n", @rows), "docs: $rule") or diag($pipeline->describe);
	is($postgres->psql("select string_agg(attname, '|' order by attnum) from pg_attribute where attrelid = '$name.orders'::regclass and attnum > 0"), $header, 'docs: its columns');
	$postgres->psql("select cdc_drop_pipeline('$name')");
}

# ---- what is refused, as cdc_check_pipeline() tells it before the start
$source->sql('create table shop.two (a int, b int, v varchar(20), n int, t varchar(5), key (v), key (n, b), unique (t), primary key (a, b))', q{insert into shop.two values (1, 1, 'x', 7, 'u')}, 'create table shop.keyless (v int)',
	'create table shop.`Upper` (`Id` int primary key)');
my @refused = (
	[ 'two', '"projection": "a, v"', qr/Column "b" of the source's key is not in the projection/ ],
	[ 'two', '"projection": "a, b, v", "key": ["a"]', qr/Column "b" of the source's key is in no column of the target's key/ ],
	[ 'two', '"projection": "a, b, v", "key": ["a", "c"]', qr/Its "key" has a column "c", and the projection has none/ ],
	[ 'two', '"projection": "a, b, v", "key": ["a", "a"]', qr/Its "key" has column "a" twice/ ],
	[ 'two', '"projection": "a, b, v", "key": ["a", "b", "v"]', qr/Column "v" is not made of the source's key alone/ ],
	[ 'two', '"projection": "a, b, random() AS r", "key": ["a", "b", "r"]', qr/Column "r" is not made of the source's key alone/ ],
	[ 'two', '"projection": "a, b + n AS b"', qr/Column "b" is not made of the source's key alone/ ],
	[ 'two', '"projection": "*, cdc_operation AS op", "key": ["a", "b", "op"]', qr/Column "op" is not made of the source's key alone/ ],
	[ 'two', q("filter": "cdc_operation <> 'delete'"), qr/filter looks at cdc_operation/ ],
	[ 'two', '"projection": "a, b, missing"', qr/column "missing" does not exist/ ],
	[ 'two', '"projection": "a, b, nofunction(v) AS v"', qr/function nofunction\(character varying\) does not exist/ ],
	[ 'two', '"projection": "a, b, count(*) AS c"', qr/aggregate functions are not allowed/ ],
	[ 'two', '"projection": "a, b, generate_series(1, n) AS c"', qr/set-returning functions are not allowed/ ],
	[ 'two', '"projection": "a, b, row_number() OVER () AS c"', qr/window functions are not allowed/ ],
	[ 'two', '"filter": "n"', qr/argument of filter must be type boolean, not type integer/ ],
	[ 'two', '"projection": "*, 1 AS xmin"', qr/name of a system column/ ],
	[ 'keyless', '"projection": "v, v AS k", "key": ["k"]', qr/no key, so nothing says which rows a change means/ ],
	[ 'keyless', '"projection": "v, now() AS t"', qr/column "t" may come out differently for the same row/ ],
	[ 'keyless', '"projection": "v, cdc_position AS p"', qr/column "p" may come out differently for the same row/ ],
	[ 'keyless', '"filter": "v > random()"', qr/filter may say something else of the same row later/ ],
	[ 'Upper', '"projection": "Id"', qr/column "id" does not exist/ ]);
for (@refused)
{
	my ($table, $rule, $why) = @$_;
	make('refused', "shop.$table", qq({"tables": "shop.$table", $rule}));
	like($postgres->psql(q{select detail from cdc_check_pipeline('refused') where status = 'error' and "check" like 'transform of shop.%'}), $why, "refused: $rule");
	$postgres->psql(q{select cdc_drop_pipeline('refused')});
}
make('useless', 'shop.two', '{"tables": "shop.t*"}, {"tables": "*.two", "projection": "*"}');
like($postgres->psql(q{select detail from cdc_check_pipeline('useless') where "check" = 'transforms' and status = 'warning'}), qr/^Member 2 of option "transforms" is for no table/, 'a member that another one is before');
$postgres->psql(q{select cdc_drop_pipeline('useless')});

# ---- a target that does not fit, and indexes
$postgres->psql('create schema misfit; create table misfit.two (a int, b int, v int, must int not null, primary key (b, a))');
run('misfit', 'shop.two', '{"tables": "shop.two", "projection": "a, b, v, n AS extra"}', on_existing => 'append');
is($pipeline->table_status('two', 'last_error_detail'), qq{Column "v" is of type integer in the target, and the projection gives character varying.\nThe target has no column "extra".\nColumn "must" is NOT NULL without a default, and the source has no such column.}, 'all that does not fit is told at once');
$postgres->psql(q{select cdc_drop_pipeline('misfit')});
run('fit', 'shop.two', '{"tables": "shop.two", "projection": "b AS bee, a AS ay, n AS \"Num\", lower(v) AS v, t"}');
ok($postgres->poll(q{select count(*) from pg_stat_cdc_index where state not in ('built', 'left_out')}, '0', 60), 'indexes are dealt with');
is($postgres->psql(q{select string_agg(source_index || ':' || coalesce(reason, state), ' ' order by source_index) from pg_stat_cdc_index}), 'n:built t:built v:option "transforms" leaves column "v" out, or makes something else of it', 'those whose columns pass through are made');
is($postgres->psql(q{select string_agg(pg_get_indexdef(indexrelid), ' ' order by indexrelid::regclass::text) from pg_index where indrelid = 'fit.two'::regclass and not indisprimary}),
	'CREATE INDEX two_n ON fit.two USING btree ("Num", bee) CREATE UNIQUE INDEX two_t ON fit.two USING btree (t)', 'under the new names');
is($postgres->psql(q{select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'fit.two'::regclass and contype = 'p'}), 'PRIMARY KEY (ay, bee)', 'the key has the order of the source');
$postgres->psql(q{select cdc_drop_pipeline('fit')});

# ---- R8: an expression throws for one row; values are in no log
$source->sql('create table shop.broken (id int primary key, v varchar(100))', q{insert into shop.broken values (1, '10'), (2, 'planted-a')}, 'create table shop.fine (id int primary key, v varchar(100))');
my $broken = '{"tables": "shop.*", "projection": "id, 100 / v::int AS part", "filter": "id <> 3"}';
run('copied', 'shop.broken', $broken);
is($pipeline->table_status('broken', 'state || last_error_sqlstate'), 'stopped22P02', 'R8: the copy meets a row that cannot be computed, and its table stops') or diag($pipeline->describe);
is($pipeline->table_status('broken', 'last_error_detail'), 'Values of rows are left out. It was thrown in transform column "part".', 'R8: the view tells which expression');
$postgres->psql(q{select cdc_drop_pipeline('copied')});
$source->sql('delete from shop.broken where id = 2');
run('streamed', 'shop.broken,shop.fine', $broken);
$source->sql(q{insert into shop.broken values (3, 'planted-b'), (4, '0')}, q{insert into shop.fine values (1, '5')});
ok($postgres->poll(q{select state || last_error_sqlstate from pg_stat_cdc_table where source_table = 'broken'}, 'stopped22012', 60), 'R8: so does the stream, division by zero; not for a row that the filter leaves out before') or diag($pipeline->describe);
$pipeline->wait_for_catchup;
is($postgres->psql('select id, part from streamed.fine'), '1|20', 'R8: other tables go on');
$postgres->psql(q{select cdc_drop_pipeline('streamed')});
$source->sql('delete from shop.broken where id in (3, 4)');
run('kept', 'shop.broken', $broken, on_error => 'dead_letter');
$source->sql(q{insert into shop.broken values (5, 'planted-c'), (6, '4'), (7, '0')}, q{update shop.broken set v = '50' where id = 6});
$pipeline->wait_for_catchup;
is($postgres->psql(q{select string_agg(id || ':' || part, ' ' order by id) from kept.broken}), '1:10 6:2', 'R8: with dead letters only the rows in question are missing');
is($postgres->psql(q{select string_agg(error_sqlstate || ' ' || error, ', ' order by error_sqlstate desc) from cdc_dead_letters}), '22P02 invalid input syntax for type integer: "planted-c", 22012 division by zero', 'R8: and kept');
is($postgres->psql(q{select count(*) from pg_stat_cdc_table t where t::text ~ 'planted'}), '0', 'no value is in the view');
is(scalar(() = $postgres->log_text =~ /planted/g), 0, 'nor in the log');
$postgres->psql(q{select cdc_drop_pipeline('kept')});
run('mended', 'shop.broken', $broken, on_error => 'dead_letter');
is($postgres->psql(q{select string_agg(id || ':' || part, ' ' order by id) from mended.broken}), '1:10 6:2', 'R8: the copy keeps them aside too');
is($postgres->psql(q{select string_agg(after ->> 'v', ' ' order by dead_letter_id) from cdc_dead_letters}), 'planted-c 0', 'R8: with the row of the source');
$postgres->psql(q{select cdc_alter_pipeline('mended', options => '{"transforms": [{"tables": "shop.*", "projection": "id, case when v ~ ''^[0-9]+$'' then 100 / nullif(v::int, 0) end AS part", "filter": "id <> 7"}]}')});
like($postgres->{messages}, qr/NOTICE: .*option "transforms" of pipeline "mended" counts for rows that are written from now on/, 'the caller is told what another transform does not do');
$postgres->psql(q{select cdc_replay_dead_letters('mended')});
ok($postgres->poll(q{select count(*) from cdc_dead_letters where state = 'waiting'}, '0', 60), 'R8: an expression that minds such values: the changes are applied after all') or diag($pipeline->describe);
is($postgres->psql(q{select string_agg(id || ':' || coalesce(part::text, ''), ' ' order by id) from mended.broken}), '1:10 5: 6:2', 'R8: by the transform as it is now');
$postgres->psql(q{select cdc_drop_pipeline('mended')});

# ---- images in part
$source->sql('create table shop.passes (id int primary key, a varchar(10), b int)', 'create table shop.masked (id int primary key, a varchar(10), b int)', 'create table shop.filtered (id int primary key, a varchar(10), b int)',
	map { "insert into shop.$_ values (1, 'x', 1), (2, 'y', 2)" } qw(passes masked filtered));
run('parts', 'shop.passes,shop.masked,shop.filtered', '{"tables": "shop.passes", "projection": "id AS key, a AS name, b, b * 2 AS twice"}, {"tables": "shop.masked", "projection": "id, md5(a) AS a, b"}, {"tables": "shop.filtered", "filter": "b > 0"}');
my $session = $source->connect;
$session->do('set session binlog_row_image = minimal');
$session->do(q{update shop.passes set b = 5 where id = 1});
$session->do(q{update shop.passes set id = 12, a = 'z' where id = 2});
$session->do(q{insert into shop.masked (id, b) values (3, 3)});
$session->do(q{delete from shop.masked where id = 2});
$session->do(q{delete from shop.filtered where id = 2});
$pipeline->wait_for_catchup;
is($postgres->psql('select * from parts.passes order by 1'), "1|x|5|10\n12|z|2|4", 'a row in part is completed from what passes through');
is($postgres->psql('select id, a is null, b from parts.masked order by 1'), "1|f|1\n3|t|3", 'inserts and deletes in part do without');
is($postgres->psql('select count(*) from parts.filtered'), '1', 'also under a filter');
$session->do(q{update shop.masked set b = 7 where id = 1});
$session->do(q{update shop.filtered set b = 7 where id = 1});
for my $table (qw(masked filtered))
{
	ok($postgres->poll("select state || last_error_sqlstate from pg_stat_cdc_table where source_table = '$table'", 'stoppedYC005', 60), "an update in part stops table $table") or diag($pipeline->describe);
	like($pipeline->table_status($table, 'last_error_hint'), qr/^Run SET GLOBAL binlog_row_image = FULL/, 'the hint says what to do');
}
$postgres->psql(q{select cdc_drop_pipeline('parts')});

# ---- the target belongs to somebody else, who may not call what the pipeline's owner may; and a view
$postgres->psql(q{create role regress_other; create schema other authorization regress_other; create function public.who(text) returns text language sql as $$ select current_user || ':' || $1 $$;
	create table other.fine (id int primary key, who text); alter table other.fine owner to regress_other;
	create table other.behind (id int primary key, who text, only_here int default 5); create view other.passes as select * from other.behind;
	create table other.filtered (twice int, id int, b int, primary key (id, b)) partition by list (b); create table other.filtered_1 partition of other.filtered for values in (1); create table other.filtered_x partition of other.filtered default});
$source->sql(q{insert into shop.fine values (2, 'b')}, 'drop table shop.filtered', 'create table shop.filtered (id int, a int, b int, primary key (id, b))', 'insert into shop.filtered values (1, 1, 1), (2, 2, 2), (3, 3, 1)');
run('other', 'shop.fine,shop.passes,shop.filtered', '{"tables": "shop.filtered", "projection": "id, b, a * 2 AS twice", "filter": "a <> 3"}, {"tables": "shop.fine", "projection": "id, public.who(v) AS who"}, {"tables": "shop.passes", "projection": "id, a AS who", "filter": "b <> 5"}', on_existing => 'append');
$source->sql(q{insert into shop.fine values (3, 'c')}, q{update shop.passes set b = 6}, q{insert into shop.passes values (20, 'q', 5), (21, 'r', 6)}, 'update shop.passes set b = 5 where id = 12');
$source->sql('update shop.filtered set b = 3, a = 4 where id = 1', 'update shop.filtered set a = 3 where id = 2', 'update shop.filtered set a = 5 where id = 3', 'insert into shop.filtered values (4, 3, 1), (5, 6, 9)');
$pipeline->wait_for_catchup;
is($postgres->psql('select tableoid::regclass, id, b, twice from other.filtered order by id'), "other.filtered_x|1|3|8\nother.filtered_1|3|1|10\nother.filtered_x|5|9|12", 'rows of a partitioned target go where the key says');
is($postgres->psql('select * from other.fine order by id'), "1|regress_other:5\n2|regress_other:b\n3|regress_other:c", 'functions are run as the role that rows are written as') or diag($pipeline->describe);
is($postgres->psql('select * from other.passes order by id'), "1|x|5\n21|r|5", 'a view takes what the filter lets through');

done_testing();
