# Values of rows are in no log and no view, whoever throws the error that stops a table: constraints, generated columns, domains, indexes and
# triggers of the target quote them, in messages, details and hints. What PostgreSQL calls the error, and which function threw it, is told. Who may
# see the rows sees all of it, in cdc_dead_letters.
#
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;

my $raise = q{language plpgsql as $$ begin raise exception 'bad %', new.v using errcode = '%s', detail = 'detail ' || new.v, hint = 'hint ' || new.v; end $$};
my %target = (
	checked => q{create table shop.checked (id int primary key, v varchar(100), check (v::int > 0))},
	generated => q{create table shop.generated (id int primary key, v varchar(100), g int generated always as (v::int) stored)},
	indexed => q{create table shop.indexed (id int primary key, v varchar(100)); create index on shop.indexed ((v::int))},
	domained => q{create domain shop.number as varchar(100) check (value::int > 0); create table shop.domained (id int primary key, v shop.number)},
	viewed => q{create table shop.behind (id int primary key, v varchar(100), check (v::int > 0)); create view shop.viewed as select * from shop.behind},
	json => q{create table shop.json (id int primary key, v varchar(100), check (v::json is not null))},
	raised => 'create table shop.raised (id int primary key, v varchar(100)); create function shop.raised() returns trigger ' . sprintf($raise =~ s/%',/%%',/r, 'P0001'),
	denied => 'create table shop.denied (id int primary key, v varchar(100)); create function shop.denied() returns trigger ' . sprintf($raise =~ s/%',/%%',/r, '42501'),
	dynamic => q{create table shop.dynamic (id int primary key, v varchar(100)); create function shop.dynamic() returns trigger language plpgsql as
		$$ begin execute format('insert into shop.gone values (%L)', new.v); return new; end $$},
	unique_part => q{create table shop.unique_part (id int primary key, v varchar(100)); create unique index on shop.unique_part ((left(v, 3)))},
	short => q{create table shop.short (id int primary key, v varchar(5))},
);
my %sqlstate = (denied => '42501', dynamic => '42P01', raised => 'P0001', unique_part => '23505', short => '22001');
my %message = (
	raised => qr/^an expression, trigger or function of the target threw an error$/,
	denied => qr/^an expression, trigger or function of the target threw an error$/,
	dynamic => qr/^relation "shop\.gone" does not exist$/,
	unique_part => qr/^duplicate key value violates unique constraint "unique_part_left_idx"$/,
	short => qr/^value of column "v" is too long for type character varying\(5\)$/,
	json => qr/^invalid input syntax for type \.\.\.$|^invalid input syntax for type json$/,
);
my %detail = (raised => qr/PL\/pgSQL function shop\.raised\(\)/, denied => qr/PL\/pgSQL function shop\.denied\(\)/);
my @tables = sort keys %target;

sub make_targets
{
	$postgres->psql(join(";\n", 'set client_min_messages = warning', 'drop schema if exists shop cascade', 'create schema shop', @target{@tables},
		map { "create trigger t before insert on shop.$_ for each row execute function shop.$_(); alter table shop.$_ enable always trigger t" } qw(raised denied dynamic)));
	return;
}

$source->sql('create database shop', map { "create table shop.$_ (id int primary key, v varchar(100))" } @tables);
make_targets();
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, schema => 'shop')->setup;

sub check_stops
{
	my ($when) = @_;
	for my $table (@tables)
	{
		ok($postgres->poll("select state from pg_stat_cdc_table where source_table = '$table'", 'stopped', 60), "$when: $table is stopped") or diag($pipeline->describe);
		is($pipeline->table_status($table, 'last_error_sqlstate'), $sqlstate{$table} // '22P02', "$when: $table: SQLSTATE");
		like($pipeline->table_status($table, 'last_error'), $message{$table} // qr/^invalid input syntax for type \.\.\.: "\.\.\."$/, "$when: $table: message");
		like($pipeline->table_status($table, 'last_error_detail'), $detail{$table}, "$when: $table: detail") if $detail{$table};
	}
	is($postgres->psql(q{select count(*) from pg_stat_cdc_table t where t::text ~ 'planted'}), '0', "$when: no value is in the view");
	is($postgres->psql(q{select count(*) from pg_stat_cdc_pipeline p where p::text ~ 'planted'}), '0', "$when: nor in that of the pipeline");
	is(scalar(() = $postgres->log_text =~ /planted/g), 0, "$when: nor in the server's log");
	return;
}

# 1. by the stream
$pipeline->start->wait_for_state('streaming');
$source->sql(map { "insert into shop.$_ values (1, 'planted-$_'), (2, 'planted-too')" } @tables);
check_stops('stream');

# 2. by the copy
$pipeline->drop;
make_targets();
$pipeline->start;
check_stops('copy');

# 3. as dead letters, with all they say
$pipeline->drop;
$source->sql(map { "delete from shop.$_" } @tables);
make_targets();
$pipeline->{options} = '{"on_error": "dead_letter"}';
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
$source->sql(q{insert into shop.checked values (1, 'planted-again')}, q{insert into shop.raised values (1, 'planted-again')});
$pipeline->wait_for_catchup;
is($postgres->psql('select source_table, error, error_detail from cdc_dead_letters order by 1'),
	qq{checked|invalid input syntax for type integer: "planted-again"|\nraised|bad planted-again|detail planted-again}, 'dead letters tell all');
is(scalar(() = $postgres->log_text =~ /planted/g), 0, 'and the log does not');

done_testing();
