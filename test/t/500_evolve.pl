# A source table changes its shape while the pipeline runs: the target follows, in stream order, and is what a pipeline would make
# of the table as it is then. Rows that were there have what the source's have, though no row event told so.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my $plain = q{id int primary key, v int, w varchar(20)};
my $rows = q{insert into shop.T (id, v, w) values (1, 10, 'one'), (2, null, 'two'), (3, 30, null)};
my $more = q{insert into shop.T values (11, 10, 'eleven')};
# table, its columns, rows before, statements after which the target follows (T is the table)
my @cases = (
	[ 'added', 'a column at the end', $plain, $rows, 'alter table shop.T add more int', 'insert into shop.T values (4, 4, 4, 4)' ],
	[ 'first', 'D11: columns FIRST and AFTER', $plain, $rows, 'alter table shop.T add a int first, add b varchar(5) after id', q{insert into shop.T values (7, 4, 'b', 4, 'w')}, 'update shop.T set v = 5 where id = 1' ],
	[ 'implicit', 'D13: rows get the zero of the type', $plain, $rows, q{alter table shop.T add i int not null, add e enum('q','w') not null, add s varchar(9) not null, add d decimal(7,2) not null, add f double not null, add st set('a','b') not null, add x blob not null, add t time not null, add y year not null, add b bit(3) not null}, q{insert into shop.T values (4, 4, '4', 1, 'w', 's', 1.5, 2.5, 'a,b', 'x', '10:00:00', 2001, b'101')} ],
	[ 'declared', 'D13: rows get the declared default', $plain, $rows, q{alter table shop.T add i int not null default 7, add s varchar(9) default 'it''s', add d decimal(7,2) default 1.5, add dt datetime default '2020-02-02 02:02:02', add e enum('q','w') default 'w', add n int default null, add b bit(3) default b'101', add da date default '2001-01-01'}, 'insert into shop.T (id) values (4)', 'alter table shop.T alter i set default 8', 'insert into shop.T (id) values (5)', 'alter table shop.T alter i drop default', 'insert into shop.T (id, i) values (6, 6)' ],
	[ 'odd_default', 'D15: defaults that are computed', $plain, $rows, q{alter table shop.T add t timestamp(6) not null default now(6), add d date default (curdate()), add e double default -1.5, add j varchar(20) default (concat('a', 'b'))}, 'insert into shop.T (id) values (4)' ],
	[ 'dropped', 'a column goes', $plain, $rows, 'alter table shop.T drop w', 'insert into shop.T values (4, 4)' ],
	[ 'replaced', 'D11: a column goes and another of its name comes', $plain, $rows, 'alter table shop.T drop w, add w int not null default 4', 'insert into shop.T values (5, 5, 5)', q{update shop.T set w = 6 where id = 1} ],
	[ 'renamed', 'a column gets another name', $plain, $rows, 'alter table shop.T rename column w to ww', q{insert into shop.T values (4, 4, '4')} ],
	[ 'changed', 'D14: CHANGE drops what it does not name', q{id int primary key, v int not null default 5 comment 'c', w varchar(20)}, q{insert into shop.T values (1, 1, '1')}, 'alter table shop.T change v vv bigint', q{insert into shop.T values (4, null, '4')} ],
	[ 'swapped', 'two columns exchange their names', q{id int primary key, a varchar(9), b varchar(9), c varchar(9)}, q{insert into shop.T values (1, 'a', 'b', 'c')}, 'alter table shop.T change a b varchar(9), change b a varchar(9)', q{insert into shop.T values (2, 'b', 'a', 'c')}, 'alter table shop.T change a b varchar(9), change b c varchar(9), change c a varchar(9)', q{insert into shop.T values (3, '1', '2', '3')} ],
	[ 'moved', 'D12: another order only', $plain, $rows, 'alter table shop.T modify v int after w', q{insert into shop.T values (4, 'four', 44)}, 'alter table shop.T modify w varchar(20) first', q{insert into shop.T values ('five', 5, 55)} ],
	[ 'clauses', 'D7: many clauses at once', $plain, $rows, q{alter table shop.T add (x int, y int default 3), add index (x), change w title varchar(40) default '' comment 'a "b" c', modify v bigint default 0, add index (v), comment 'all of it', engine=InnoDB, algorithm=copy}, q{insert into shop.T (id, v, title) values (4, 4, 'four')} ],
	[ 'strange', 'D17: strange names', $plain, $rows, q{alter table shop.T add `a.b c\\d` int default 1, add `9lives` int, add `#h` int, add `ü€` varchar(5) default 'ü'}, q{insert into shop.T (id, `9lives`, `#h`) values (4, 9, 8)}, q{alter table shop.T rename column `a.b c\\d` to `select`, rename column `9lives` to `order`}, q{insert into shop.T (id, `select`) values (5, 5)} ],
	[ 'Case_', 'D18: upper and lower case', q{Id int primary key, Val int, w varchar(9)}, q{insert into shop.T values (1, 1, 'a')}, 'alter table shop.T change VAL vAl bigint, modify W varchar(20)', q{insert into shop.T values (2, 2, 'b')}, 'alter table shop.T drop column VaL', q{insert into shop.T values (3, 'c')} ],
	[ 'rapid', 'D30: statements and rows in turn', $plain, $rows, map { ("alter table shop.T add c$_ int not null default $_", "insert into shop.T (id, v) values (10 + $_, $_)", $_ > 1 ? ("alter table shop.T drop c" . ($_ - 1)) : ()) } 1 .. 6 ],
	[ 'nullable', 'NOT NULL comes and goes', q{id int primary key, a int not null, b int, c int}, 'insert into shop.T values (1, 1, 1, 1)', 'alter table shop.T modify a int, modify b int not null', 'insert into shop.T values (2, null, 2, null)' ],
	[ 'wider', 'a wider type of the same kind', q{id int primary key, a tinyint, b varchar(5), c decimal(5,2), d datetime(0), e enum('a','b'), f text}, q{insert into shop.T values (1, 1, 'b', 1.5, '2020-01-01 00:00:00', 'b', 'f')}, q{alter table shop.T modify a bigint, modify b varchar(300), modify c decimal(12,3), modify d datetime(6), modify e enum('a','b','c'), modify f longtext}, q{insert into shop.T values (2, 99999999999, repeat('x', 300), 123456.789, '2020-01-01 00:00:00.123456', 'c', 'g')} ],
	[ 'keyed', 'D31: another key', q{id int primary key, v int not null, w varchar(20)}, q{insert into shop.T values (1, 10, 'a'), (2, 20, 'b')}, 'alter table shop.T drop primary key, add primary key (v)', q{insert into shop.T values (1, 30, 'c')}, q{update shop.T set w = 'd' where v = 10}, 'alter table shop.T drop primary key, add primary key (v, id)', q{delete from shop.T where v = 20}, 'alter table shop.T change v vv int not null', q{update shop.T set w = 'e' where vv = 30}, 'alter table shop.T drop primary key, add primary key (vv), drop id', q{update shop.T set w = 'f' where vv = 30} ],
	[ 'comments', 'comments', $plain, $rows, q{alter table shop.T comment 'of the "table"', modify v int comment 'of ''v'''}, q{insert into shop.T values (4, 4, '4')}, q{alter table shop.T comment '', modify v int} ],
	[ 'number', 'AUTO_INCREMENT comes', $plain, $rows, 'alter table shop.T modify id int auto_increment', q{insert into shop.T (v, w) values (4, '4')} ],
);
$source->sql('create database shop', map { my ($table, $name, $columns, $insert) = @$_; ("create table shop.$table ($columns)", $insert =~ s/\bshop\.T\b/shop.$table/r) } @cases);
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start->wait_for_state('streaming')->wait_for_tables;

for my $case (@cases)
{
	my ($table, $name, $columns, $insert, @statements) = @$case;
	$source->sql(map { s/\bshop\.T\b/shop.$table/gr } @statements);
}
$pipeline->wait_for_catchup->wait_for_state('streaming')->wait_for_tables;
$pipeline->are_same('as the source', { map { $_->[0] => $_->[1] } @cases }, map { $_->[0] } @cases);
is($postgres->psql(q{select string_agg(source_table || ': ' || last_error || coalesce(last_error_detail, ''), ' ') from pg_stat_cdc_table where state <> 'streaming'}), '', 'every table streams') or diag($pipeline->describe);
is($postgres->psql(q{select string_agg(distinct result, ' ') from cdc_schema_history}), 'applied', 'each change was applied')
  or diag($postgres->psql(q{select source_table, statement, result, error, error_detail, commands from cdc_schema_history where result <> 'applied'}));

# what a pipeline makes of the tables as they are now
my $fresh = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => 'fresh', target_schema => 'fresh', options => '{"snapshot": "schema_only"}')->start->wait_for_state('streaming');
my $shape = sub {
	my ($schema, $table) = @_;
	return $postgres->psql(qq{select string_agg(format('%s %s%s%s%s %s', attname, format_type(atttypid, atttypmod), case when attnotnull then ' not null' end, ' default ' || pg_get_expr(adbin, adrelid),
		case attidentity when '' then '' else ' identity' end, col_description(attrelid, attnum)), e'\\n' order by attname)
		from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum where attrelid = '$schema."$table"'::regclass and attnum > 0 and not attisdropped})
	  . $postgres->psql(qq{select pg_get_constraintdef(oid) from pg_constraint where conrelid = '$schema."$table"'::regclass and contype = 'p'}) . ' ' . $postgres->psql(qq{select obj_description('$schema."$table"'::regclass)});
};
for my $case (@cases)
{
	my ($table, $name) = @$case;
	is($shape->('shop', $table), $shape->('fresh', $table), "$name: the target has the shape that it would be made with");
}
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
