# Option transforms, "target": "partial": source tables of two servers each fill their own columns of the rows of one target, by copy and stream;
# deletes, keys that change, filters, images in part, TRUNCATE, DROP, new copies, changes of their shape; what others write; cdc_verify(); kills; what is refused.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my ($shop, $crm) = my @sources = map { CdcBridge::Source->new } 1 .. 2;
my $postgres = CdcBridge::Postgres->new;
my $routes = '"routes": [{"source": "*.cut_*", "schema": "whole", "table": "cut"}, {"source": "*.*", "schema": "whole", "table": "customer"}]';
my $shop_rules = '{"tables": "shop.account", "projection": "id, balance, level AS grade", "filter": "closed = 0", "target": "partial", "part": "money"}, {"tables": "shop.*", "target": "partial"}';
my @pipelines = (
	CdcBridge::Pipeline->new(source => $shop, postgres => $postgres, name => 'shop_in', server => 'shop', schema => 'shop', tables => '{shop.*}',
		options => qq({"batch_max_ms": 0, "on_existing": "append", "schema_changes": "evolve", $routes, "transforms": [$shop_rules]})),
	CdcBridge::Pipeline->new(source => $crm, postgres => $postgres, name => 'crm_in', server => 'crm', schema => 'crm', tables => '{crm.*}',
		options => qq({"batch_max_ms": 0, $routes, "transforms": [{"tables": "crm.contact", "projection": "customer AS id, phone", "target": "partial"}, {"tables": "crm.*", "target": "partial"}]})));
my ($in, $other) = @pipelines;
my $quote = \&CdcBridge::Pipeline::quote;
sub settle { $_->wait_for_catchup->wait_for_state('streaming')->wait_for_tables->wait_for_catchup for @_ ? @_ : @pipelines; return; }
# Rows with the initials of their parts.
sub rows
{
	my ($columns, $table) = @_;
	return $postgres->psql("select coalesce(string_agg(concat_ws('/', id, (select coalesce(string_agg(left(p, 1), ''), '') from unnest(cdc_parts) p), $columns), ' ' order by id), '') from whole." . ($table // 'customer'));
}
sub all { return rows(q{coalesce(name, '-'), coalesce(balance::text, '-') || coalesce(grade::text, '-'), coalesce(phone, '-')}); }
sub types { return $postgres->psql(q{select string_agg(attname || ' ' || format_type(atttypid, atttypmod) || case when attnotnull then '!' else '' end, ', ' order by attname) from pg_attribute where attrelid = 'whole.customer'::regclass and attnum > 0 and not attisdropped}); }

$shop->sql('create database shop', 'create table shop.profile (id int primary key, name varchar(10) not null, mail varchar(10), unique key (name))', q{insert into shop.profile values (1, 'ann', 'a@x'), (2, 'bob', null), (3, 'cat', 'c@x')},
	'create table shop.account (id int primary key, balance decimal(6,2) not null, level int, closed int not null default 0)', 'insert into shop.account values (2, 2.50, 20, 0), (3, 3, 30, 0), (4, 4, null, 0), (5, 5, 50, 1)',
	'create table shop.cut_a (id int primary key, a varchar(10))', q{insert into shop.cut_a values (1, 'a1'), (11, 'a11')}, 'create table shop.cut_b (id int primary key, b int not null)', 'insert into shop.cut_b values (11, 110), (12, 120)');
$crm->sql('create database crm', 'create table crm.spare (id int primary key, kept int)', 'create table crm.contact (customer int primary key, phone varchar(10))', q{insert into crm.contact values (3, 't3'), (4, 't4'), (6, 't6')});
# a target that is there: partitioned, one partition has its columns in another order, with rows and a column of somebody else's
$postgres->psql(q{create schema whole; create table whole.cut (id int primary key, own int default 7, a varchar(10), b int not null default 0) partition by range (id);
	create table whole.cut_low partition of whole.cut for values from (0) to (10); create table whole.cut_high (b int not null default 0, a varchar(10), own int default 8, id int not null);
	alter table whole.cut attach partition whole.cut_high for values from (10) to (100); insert into whole.cut values (1, 70, 'old'), (50, 71, 'mine')});
$_->setup->start for @pipelines;
settle();

# ---- the copy
my $join = '1/p/ann/--/- 2/mp/bob/2.5020/- 3/cmp/cat/3.0030/t3 4/cm/-/4.00-/t4 6/c/-/--/t6';
is(all(), $join, 'copies: a row has what each source table has under its key') or diag(map { $_->describe } @pipelines);
is(types(), 'balance numeric(6,2), cdc_parts text[]!, grade integer, id integer!, kept integer, mail character varying(10), name character varying(10), phone character varying(10)', 'columns of all, none but the key NOT NULL');
is(rows(q{coalesce(own::text, '-'), coalesce(a, '-'), coalesce(b::text, '-')}, 'cut'), '1/c/70/a1/0 11/cc/8/a11/110 12/c/8/-/120 50//71/mine/0', 'a partitioned target that was there, with rows and columns of others');

# ---- the stream
$shop->sql(q{update shop.profile set name = 'Ann' where id = 1}, 'delete from shop.profile where id = 2', 'insert into shop.account values (1, 1, 10, 0)', 'delete from shop.account where id = 4', q{insert into shop.profile values (6, 'fred', null)});
$crm->sql('delete from crm.contact where customer = 3', 'delete from crm.contact where customer = 4', q{insert into crm.contact values (1, 't1')}, q{update crm.contact set phone = 'T6' where customer = 6});
settle();
is(all(), '1/cmp/Ann/1.0010/t1 2/m/bob/2.5020/- 3/mp/cat/3.0030/- 6/cp/fred/--/T6' =~ s/bob/-/r, 'changes touch their own columns; a row goes with its last part');
$shop->sql('start transaction', 'delete from shop.profile where id = 3', 'delete from shop.account where id = 3', q{insert into shop.profile values (3, 'kit', null)}, 'update shop.account set id = 7 where id = 1', 'update shop.profile set id = 8 where id = 1', 'update shop.profile set id = 2 where id = 8', 'commit');
settle();
is(all(), '1/c/-/--/t1 2/mp/Ann/2.5020/- 3/p/kit/--/- 6/cp/fred/--/T6 7/m/-/1.0010/-', 'within one transaction: the key of one part changes, and the others stay');
$shop->sql('update shop.account set closed = 1 where id = 2', 'update shop.account set closed = 0 where id = 5', 'update shop.account set closed = 1, balance = 9 where id = 7');
settle();
is(all(), '1/c/-/--/t1 2/p/Ann/--/- 3/p/kit/--/- 5/m/-/5.0050/- 6/cp/fred/--/T6', 'a filter: a part that leaves it goes, one that comes in is there');
$shop->sql('set session binlog_row_image = minimal', q{update shop.profile set mail = 'f@x' where id = 6}, q{update shop.profile set name = 'KIT' where id = 3}, 'delete from shop.profile where id = 2', 'update shop.profile set id = 9 where id = 3');
settle();
is(rows(q{coalesce(name, '-'), coalesce(mail, '-')}), '1/c/-/- 5/m/-/- 6/cp/fred/f@x 9/p/KIT/-', 'images that have only the key and what changed');
is($postgres->psql(q{select string_agg(source_table || ' ' || collapsed || ' ' || conflicts, ', ' order by source_table) from pg_stat_cdc_table where source_table in ('profile', 'account')}), 'account false 0, profile false 0', 'no batches, no conflicts');
$shop->sql('delete from shop.cut_a where id = 11', 'delete from shop.cut_b where id = 12', 'update shop.cut_a set id = 12 where id = 1');
settle($in);
is(rows(q{coalesce(own::text, '-'), coalesce(a, '-'), coalesce(b::text, '-')}, 'cut'), '11/c/8/-/110 12/c/8/a1/- 50//71/mine/0' =~ s{a1/-}{a1/0}r, 'in partitions');

# ---- what others write
$postgres->psql(q{update whole.customer set cdc_parts = cdc_parts || '{me}' where id = 9; update whole.customer set cdc_parts = '{crm}' where id = 6});
$shop->sql('set session binlog_row_image = full', 'delete from shop.profile where id = 9', q{update shop.profile set name = 'FRED' where id = 6});
settle($in);
is(rows(q{coalesce(name, '-')}), '1/c/- 5/m/- 6/cp/FRED 9/m/-', 'a row stays with a part of somebody else, and one that lost the part gets it back');
is($in->table_status('profile', 'conflicts'), '1', 'which is a conflict');
$postgres->psql(q{delete from whole.customer where id = 9; update whole.customer set cdc_parts = '{contact,profile}' where id = 6});

# ---- cdc_verify(): a row without the part counts as none
$in->is_verified('what is compared is the part', 'profile', 'account');
$other->{schema} = 'crm';
$other->is_verified('of another server, too', 'contact');
is($in->verify_mode('count', 'profile'), '', 'and counted');
$postgres->psql(q{update whole.customer set cdc_parts = '{profile}' where id = 1; update whole.customer set phone = 'x', mail = 'y' where id = 6});
like($other->verify('contact'), qr/^contact: 1 missing, 0 extra, 1 different/m, 'a part that is missing, and one that differs') or diag($other->verify('contact'));
like($in->verify('profile'), qr/^profile: 0 missing, 1 extra, 1 different/m, 'one too many, and one that differs');

# ---- a new copy of one table
$postgres->psql(q{select cdc_resync_table('crm_in', 'crm.contact'); select cdc_resync_table('shop_in', 'shop.profile')});
settle();
is(rows(q{coalesce(name, '-'), coalesce(mail, '-'), coalesce(balance::text, '-'), coalesce(phone, '-')}), '1/c/-/-/-/t1 5/m/-/-/5.00/- 6/cp/FRED/f@x/-/T6', 'new copies set their own columns right') or diag($in->describe, $other->describe);

# ---- changes of shape
$shop->sql('alter table shop.profile add column age int, add column town varchar(9) not null default ' . $quote->('nil'), q{update shop.profile set age = 66 where id = 6}, q{insert into shop.profile (id, name, town) values (1, 'ann', 'ulm')});
settle($in);
is(rows(q{coalesce(name, '-'), coalesce(age::text, '-'), coalesce(town, '-'), coalesce(phone, '-')}), '1/cp/ann/-/ulm/t1 5/m/-/-/-/- 6/cp/FRED/66/nil/T6', 'columns that one table gets are in its part') or diag($in->describe);
$shop->sql('alter table shop.profile drop column mail', 'alter table shop.profile rename column town to place', 'alter table shop.profile modify name varchar(30)', q{update shop.profile set name = 'a name that is long' where id = 1}, 'delete from shop.profile where id = 6');
settle($in);
is(rows(q{coalesce(name, '-'), coalesce(town, '-'), coalesce(place, '-'), coalesce(phone, '-')}), '1/cp/a name that is long/-/ulm/t1 5/m/-/-/-/- 6/c/-/-/-/T6', 'DROP, RENAME and MODIFY of its own columns, and a row that goes then') or diag($in->describe);
unlike(types(), qr/mail/, 'a column that the source drops goes: nobody else has it');
$crm->sql('alter table crm.contact add column note int', 'alter table crm.contact drop column note');
settle($other);
is(rows(q{coalesce(phone, '-')}), '1/cp/t1 5/m/- 6/c/T6', 'what a projection does not have is none of its columns');

# ---- TRUNCATE, DROP
$crm->sql('truncate table crm.contact', q{insert into crm.contact values (5, 't5')});
settle($other);
is(rows(q{coalesce(place, '-'), coalesce(phone, '-')}), '1/p/ulm/- 5/cm/-/t5', 'TRUNCATE takes its own part from all rows');
is($postgres->psql(q{select result, commands from cdc_bridge.schema_history where kinds = '{truncate_table}'}),
	qq{applied|{"DELETE FROM ONLY whole.customer WHERE cdc_parts @> ARRAY['contact']::pg_catalog.text[] AND pg_catalog.array_remove(cdc_parts, 'contact') = '{}'; UPDATE ONLY whole.customer SET phone = NULL, cdc_parts = pg_catalog.array_remove(cdc_parts, 'contact') WHERE cdc_parts @> ARRAY['contact']::pg_catalog.text[]"}},
	'and the history has the statements');
$shop->sql('drop table shop.cut_b');
$in->wait_for_catchup;
ok($postgres->poll(q{select count(*) from pg_stat_cdc_table where source_table = 'cut_b'}, '0', 30), 'a table that is dropped leaves');
is(rows(q{coalesce(a, '-'), coalesce(b::text, '-')}, 'cut'), '12/c/a1/0 50//mine/0', 'with its part, as "evolve" says');

$shop->sql('rename table shop.cut_a to shop.cut_z', q{insert into shop.cut_z values (50, 'z')});
settle($in);
is(rows(q{cdc_parts::text, coalesce(a, '-')}, 'cut'), '12/c/{cut_z}/a1 50/c/{cut_z}/z', 'a table that gets another name goes on, and so does its part') or diag($in->describe);

# ---- kill -9
my @pids = split(/\n/, $postgres->psql(q{select pid from pg_stat_activity where backend_type like 'cdc_bridge % worker'}));
$shop->sql('start transaction', (map { ("insert into shop.profile (id, name) values ($_, 'n$_')", "insert into shop.account values ($_, $_, $_, 0)") } 20 .. 29), 'delete from shop.account where id in (20, 21)', 'delete from shop.profile where id in (20, 22)', 'commit');
$postgres->kill9_process($pids[0]);
settle();
is($postgres->psql('select string_agg(concat_ws(' . q{'/', id, name, grade), ' ' order by id) from whole.customer where id between 20 and 22}), '21/n21 22/22', 'after a kill') or diag($in->describe);

# ---- what is refused, and told
$shop->sql('create table shop.again (id int primary key, name varchar(10))');
$in->wait_for_catchup;
ok($postgres->poll(q{select state from pg_stat_cdc_table where source_table = 'again'}, 'stopped', 60), 'a table with a column that is another one\'s is refused') or diag($in->describe);
like($postgres->psql(q{select last_error || ' ' || last_error_detail || ' ' || last_error_hint from pg_stat_cdc_table where source_table = 'again'}), qr/"shop.profile" and "shop.again" cannot fill the same rows of target "whole.customer".*Both fill column "name".*"part"/, 'and it says which');
$crm->sql('create table crm.profile (id int primary key, fax int)');
$other->wait_for_catchup;
ok($postgres->poll(q{select last_error_detail from pg_stat_cdc_table where source_table = 'profile' and source_schema = 'crm' and state = 'stopped'}, 'The part of both is called "profile".', 60), 'two parts with one name are refused') or diag($other->describe);
$shop->sql('alter table shop.profile add column phone int');
ok($postgres->poll(q{select state || ' ' || last_error_detail from pg_stat_cdc_table where source_table = 'profile' and source_schema = 'shop'}, 'stopped Both fill column "phone".', 60), 'so is a column that comes later') or diag($in->describe);
is($postgres->psql(q{select string_agg(distinct phone, ' ') from whole.customer}), 't5', 'which nobody writes to');

$shop->sql('create database bad', 'create table bad.keyless (v int)', 'create table bad.named (id int primary key, cdc_parts int)', 'create table bad.p1 (id int primary key, v int)', 'create table bad.p2 (id int primary key, v int)', 'create table bad.p3 (id int primary key, w int)');
sub told
{
	my ($tables, $rules) = @_;
	$postgres->psql("select cdc_create_pipeline('bad', source => 'shop', tables => '{$tables}', options => " . $quote->(qq({"routes": [{"source": "bad.*", "schema": "bad", "table": "t"}], "transforms": [$rules]})) . ')');
	my $found = $postgres->psql(q{select coalesce(string_agg(concat_ws(' ', detail, hint), e'\n'), '') from cdc_check_pipeline('bad') where status = 'error'});
	$postgres->psql(q{select cdc_drop_pipeline('bad')});
	return $found;
}
like(told('bad.keyless', '{"tables": "bad.*", "target": "partial"}'), qr/has no key, so nothing says which row its part belongs to/, 'a table without a key');
like(told('bad.named', '{"tables": "bad.*", "target": "partial"}'), qr/Its rows have a column "cdc_parts"/, 'a column that is called so');
like(told('bad.p1,bad.p2,bad.p3', '{"tables": "bad.*", "target": "partial"}'), qr/"bad.p1" and "bad.p2" cannot fill the same rows of their target: both fill column "v"/, 'before the start: one column for two');
like(told('bad.p1,bad.p3', '{"tables": "bad.*", "target": "partial", "part": "x"}'), qr/"bad.p1" and "bad.p3" cannot fill .*the part of both is called "x"/, 'one name for two');
is(told('bad.p1,bad.p3', '{"tables": "bad.*", "target": "partial"}'), '', 'and what can be done is not complained of');

# ---- other options for a table that has its place
$other->stop;
$postgres->psql('select cdc_alter_pipeline(' . "'crm_in', options => " . $quote->(qq({"transforms": [{"tables": "crm.contact", "projection": "customer AS id, phone AS name", "target": "partial"}]})) . ')');
$crm->sql(q{insert into crm.contact values (1, 'no')});
$other->start;
ok($postgres->poll(q{select state || ' ' || last_error_detail from pg_stat_cdc_table where source_table = 'contact'}, 'stopped Column "name" was not one of its own.', 60), 'columns that an altered option gives it are not written') or diag($other->describe);
$postgres->psql('select cdc_alter_pipeline(' . "'crm_in', options => " . $quote->(qq({"transforms": [{"tables": "crm.contact", "projection": "customer AS id, phone"}]})) . q{); select cdc_resync_table('crm_in', 'crm.contact')});
ok($postgres->poll(q{select state || ' ' || last_error from pg_stat_cdc_table where source_table = 'contact'}, 'stopped target table "whole.customer" has rows of another kind', 60), 'a part does not become whole rows') or diag($other->describe);
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

$_->stop for @pipelines;
done_testing();
