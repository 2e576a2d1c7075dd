# Source tables with a transform change their shape: columns that pass through are followed, masks and computed columns are never taken for
# the source's, what no longer fits stops the table. Rows are those that the source's own SQL says.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $create = '(id int primary key, email varchar(20), price decimal(6,2), note varchar(10))';
my @tables = qw(star other listed filtered gone renamed widened);
$source->sql('create database shop', (map { ("create table shop.`$_` (id int primary key, note varchar(10) not null default 'a', d date)", "insert into shop.`$_` (id) values (1), (2)") } qw(named owned wide)), map { ("create table shop.$_ $create", "insert into shop.$_ values (1, 'ann\@x', 1.25, 'a'), (2, 'bob\@x', 2.50, 'b')") } @tables);
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, schema => 'shop', options => q({"transforms": [
	{"tables": "shop.named", "projection": "id, cdc_table AS origin"},
	{"tables": "shop.listed", "projection": "id, price * 2 AS twice"},
	{"tables": "shop.filtered", "filter": "price < 100"},
	{"tables": ["shop.star", "shop.renamed"], "projection": "*, reverse(email) AS email"},
	{"tables": "shop.other", "projection": "*, upper(note)::varchar(20) AS email"},
	{"tables": ["shop.gone", "shop.widened"], "projection": "*, price * 2 AS twice"}]}));
$pipeline->setup->start->wait_for_state('streaming')->wait_for_tables;

sub there { return join("\n", map { join('|', map { $_ // '' } @$_) } $source->query_rows($_[0])); }
sub is_same
{
	my ($table, $here, $there, $name) = @_;
	$pipeline->wait_for_catchup;
	is($postgres->psql("select $here from shop.$table order by id"), there("select $there from shop.$table order by id"), $name) or diag($pipeline->describe);
	return;
}
sub columns { return $postgres->psql("select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum) from pg_attribute where attrelid = 'shop.$_[0]'::regclass and attnum > 0 and not attisdropped"); }

# ---- "*" follows, beside a mask
$source->sql(q{alter table shop.star add column extra int not null default 7}, q{insert into shop.star values (3, 'cid@x', 3, 'c', 8)});
is_same('star', 'id, email, price, note, extra', 'id, reverse(email), price, note, extra', 'a column is added, rows that were there have its default');
$source->sql(q{alter table shop.star change note remark varchar(30)}, q{update shop.star set remark = 'twenty characters....' where id = 1});
is_same('star', 'id, email, price, remark, extra', 'id, reverse(email), price, remark, extra', 'a column gets another name and a wider type');
$source->sql('alter table shop.star drop column extra', q{insert into shop.star values (4, 'dan@x', 4, 'd')});
is_same('star', '*', 'id, reverse(email), price, remark', 'a column goes');
$source->sql('alter table shop.star modify email varchar(200)', sprintf(q{insert into shop.star values (5, '%s', 5, 'e')}, 'x' x 150));
$pipeline->wait_for_catchup;
ok($postgres->poll('select tables_asked = tables_done from cdc_bridge.pipeline_state', 't', 60), 'a masked column changes its type: the rows are computed anew');
$pipeline->wait_for_tables;
is_same('star', '*', 'id, reverse(email), price, remark', 'with all rows');
is(columns('star'), 'id integer, email text, price numeric(6,2), remark character varying(30)', 'and the mask is what it was');

# ---- a column of the projection has the name of one that has nothing to do with it
$source->sql(q{update shop.other set email = '5'}, 'alter table shop.other modify email int', q{insert into shop.other values (3, 6, 3, 'c')});
$pipeline->wait_for_catchup;
ok($postgres->poll('select tables_asked = tables_done from cdc_bridge.pipeline_state', 't', 60), 'that one gets another type');
$pipeline->wait_for_tables;
is_same('other', '*', 'id, upper(note), price, note', 'which changes nothing here');
$source->sql('alter table shop.other drop column email', q{insert into shop.other values (4, 4, 'd')});
is_same('other', '*', 'id, upper(note), price, note', 'nor does it when it goes') or note($pipeline->table_status('other', 'state'));

# ---- a list of columns has no use for others
$source->sql('alter table shop.listed add column extra int, drop column note', q{insert into shop.listed values (3, 'cid@x', 3, 9)});
is_same('listed', 'id, twice', 'id, price * 2', 'columns that are not named come and go');
is(columns('listed'), 'id integer, twice numeric', 'and the target stays as it is');

# ---- a filter alone
$source->sql('alter table shop.filtered add column extra int', q{insert into shop.filtered values (3, 'c', 500, 'c', 1), (4, 'd', 5, 'd', 2)});
$pipeline->wait_for_catchup;
is($postgres->psql('select * from shop.filtered order by id'), "1|ann\@x|1.25|a|\n2|bob\@x|2.50|b|\n4|d|5.00|d|2", 'a table with a filter is followed');

# ---- what an expression needs is gone, or called otherwise
$source->sql('alter table shop.gone drop column price');
ok($postgres->poll(q{select state || last_error_sqlstate from pg_stat_cdc_table where source_table = 'gone'}, 'stopped42703', 60), 'a column that an expression needs is dropped') or diag($pipeline->describe);
$source->sql('alter table shop.renamed change email mail varchar(20)');
ok($postgres->poll(q{select state || last_error_sqlstate from pg_stat_cdc_table where source_table = 'renamed'}, 'stopped42703', 60), 'or gets another name') or diag($pipeline->describe);
is($postgres->psql('select email from shop.renamed order by id'), "x\@nna\nx\@bob", 'nothing happens to the mask');

# ---- a column that passes through and is computed with: not altered, and never cut
$source->sql('alter table shop.widened modify price decimal(8,4)', q{insert into shop.widened values (3, 'c', 3.3333, 'c')});
ok($postgres->poll(q{select state from pg_stat_cdc_table where source_table = 'widened'}, 'stopped', 60), 'its target cannot hold all values any more') or diag($pipeline->describe);
like($pipeline->table_status('widened', 'last_error_detail'), qr/^Column "price": not every value of the source's type decimal\(8,4\) fits into numeric\(6,2\)/, 'the reason');
$postgres->psql(q{alter table shop.widened alter price type numeric(8,4); select cdc_resync_table('shop_in', 'shop.widened')});
ok($postgres->poll(q{select tables_asked = tables_done from cdc_bridge.pipeline_state}, 't', 60), 'made to fit, it is copied anew');
$pipeline->wait_for_tables;
is_same('widened', 'id, price, twice', 'id, price, price * 2', 'and goes on');

# ---- a column is called like metadata from now on
$source->sql('alter table shop.named add cdc_table int default 3', 'insert into shop.named (id) values (3)');
$pipeline->wait_for_catchup;
ok($postgres->poll('select string_agg(id || $$ $$ || origin, $$, $$ order by id) from shop.named', '1 3, 2 3, 3 3', 30), 'a column called like metadata comes: the rows are computed anew') or diag($pipeline->describe);
$source->sql('alter table shop.named drop cdc_table');
$pipeline->wait_for_catchup;
ok($postgres->poll('select string_agg(id || $$ $$ || origin, $$, $$ order by id) from shop.named', '1 named, 2 named, 3 named', 30), 'and when it goes') or diag($pipeline->describe);

# ---- what keeps a target from being altered: what helps is said
$postgres->psql(q{create role keeper; grant usage on schema shop to keeper; alter table shop.owned owner to keeper; do $$ begin
	execute 'alter table shop.wide ' || (select string_agg('add c' || i || ' int', ', ') from generate_series(1, 1595) i); execute 'alter table shop.wide ' || (select string_agg('drop c' || i, ', ') from generate_series(1, 1595) i); end $$});
$source->sql('alter table shop.owned drop primary key, add primary key (id, note)', map { "alter table shop.wide add n$_ int" } 1 .. 3);
$pipeline->wait_for_table_state($_, 'stopped') for qw(owned wide);
is($pipeline->table_status('owned', 'last_error_hint'), 'The target belongs to role "keeper", as whom it is altered: run GRANT CREATE ON SCHEMA shop TO keeper, then use cdc_resync_table().', 'a right that the owner lacks');
like($pipeline->table_status('wide', 'last_error_hint'), qr/^Columns that were dropped count for ever/, 'a target with too many columns, most of them dropped');

# ---- changes that the options leave out
$postgres->psql(q{select cdc_drop_pipeline('shop_in')});
$source->sql("create table shop.ignored $create", q{insert into shop.ignored values (1, 'a@x', 1, 'a')});
$pipeline = CdcBridge::Pipeline->new(name => 'ignoring', source => $source, postgres => $postgres, schema => 'shop', tables => '{shop.ignored}', target_schema => 'ignored',
	options => '{"schema_changes": "ignore", "transforms": [{"tables": "shop.*", "projection": "*, price * 2 AS twice"}]}');
$pipeline->start->wait_for_state('streaming')->wait_for_tables;
$source->sql('alter table shop.ignored add column extra text', q{insert into shop.ignored values (2, 'b@x', 2, 'b', 'x')}, 'set session binlog_row_image = minimal', q{update shop.ignored set extra = 'y', price = 3}, q{update shop.ignored set extra = 'z' where id = 1});
$pipeline->wait_for_catchup;
is($pipeline->table_status('ignored', 'state'), 'streaming', 'a column that is left out') or diag($pipeline->describe);
is($postgres->psql('select * from ignored.ignored order by id'), "1|a\@x|3.00|a|6.00\n2|b\@x|3.00|b|6.00", 'is not meant by "*"');

done_testing();
