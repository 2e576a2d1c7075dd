# A table belongs to another role than the pipeline, which is a superuser's: whatever code of that role hangs on the table runs as that role and
# never as the superuser. That is more than triggers: domains, defaults, expressions and predicates of indexes are called too, some of them when the
# table is only opened. Each writes down who it was called as.
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
$postgres->psql(<<'SQL');
create role maker login;
create schema shop authorization maker;
set role maker;
create table shop.calls (who text, what text);
create function shop.note(what text) returns integer language plpgsql volatile as $$
begin
	insert into shop.calls values (current_user, what);
	return 1;
end $$;
-- what is immutable may not write, and may call what does
create function shop.one(what text) returns integer language plpgsql immutable as $$ begin return (select shop.note(what)); end $$;
create function shop.fine(v text, what text) returns boolean language plpgsql as $$ begin return shop.note(what) = 1; end $$;
create function shop.noted() returns trigger language plpgsql as $$ begin perform shop.note('trigger'); return new; end $$;
create domain shop.word as varchar(50) check (shop.fine(value, 'domain'));
create table shop.domained (id integer primary key, v shop.word);
create table shop.defaulted (id integer primary key, v varchar(50), w integer default shop.one('default'));
create table shop.expressed (id integer primary key, v varchar(50));
create index on shop.expressed ((id + shop.one('index expression')));
create table shop.predicated (id integer primary key, v varchar(50));
create index on shop.predicated (v) where id > shop.one('index predicate');
create table shop.checked (id integer primary key, v varchar(50), check (id < 1000 + shop.one('check')));
create table shop.generated (id integer primary key, v varchar(50), g integer generated always as (id + shop.one('generated')) stored);
create table shop.triggered (id integer primary key, v varchar(50));
create trigger t before insert or update on shop.triggered for each row execute function shop.noted();
alter table shop.triggered enable always trigger t;
create table shop.parted (id integer primary key, v varchar(50)) partition by range (id);
create table shop.parted_1 partition of shop.parted for values from (0) to (1000);
create index on shop.parted_1 ((id + shop.one('index of a partition')));
create table shop.behind (id integer primary key, v varchar(50), w integer default shop.one('default behind a view'));
create view shop.viewed as select id, v from shop.behind;
truncate shop.calls;
SQL
my @tables = qw(checked defaulted domained expressed generated parted predicated triggered viewed);
my @what = ('check', 'default', 'default behind a view', 'domain', 'generated', 'index expression', 'index of a partition', 'index predicate', 'trigger');
$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, v varchar(50))", "insert into shop.$_ values (1, '{one}')") } @tables);
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup;

# Who was it called as, and what was called at all?
sub check_calls
{
	my ($when, @called) = @_;
	is($postgres->psql(q{select string_agg(distinct who || ': ' || what, ', ') from shop.calls where who <> 'maker'}), '', "$when: nothing ran as the superuser");
	my %ran = map { $_ => 1 } split(/\n/, $postgres->psql('select distinct what from shop.calls'));
	is_deeply([ grep { !$ran{$_} } @called ], [], "$when: but it ran") if @called;
	$postgres->psql('truncate shop.calls');
	return;
}

$pipeline->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
is($postgres->psql(q{select string_agg(source_table || ': ' || last_error, E'\n') from pg_stat_cdc_table where state <> 'streaming'}), '', 'all tables stream')
  or diag($pipeline->describe);
check_calls('copy', @what);
$source->sql(map { ("insert into shop.$_ values (2, '{two}'), (3, '{three}')", "update shop.$_ set v = '{four}' where id = 2", "delete from shop.$_ where id = 3") } @tables);
$pipeline->wait_for_catchup;
is($postgres->psql(q{select string_agg(source_table, ' ') from pg_stat_cdc_table where state <> 'streaming'}), '', 'all tables stream on') or diag($pipeline->describe);
check_calls('stream', grep { $_ !~ /^index/ } @what);    # those are planned once in a process
$pipeline->stop->start->wait_for_state('streaming');
$source->sql(map { "insert into shop.$_ values (5, '{five}')" } @tables);
$pipeline->wait_for_catchup;
check_calls('a stream that begins anew', @what);
is($pipeline->verify, '', 'a comparison finds nothing');
check_calls('comparison');
$postgres->psql(q{select count(*) from cdc_check_pipeline('shop_in')});
check_calls('check');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.' || t) from unnest('{checked,defaulted,domained,expressed,generated,predicated}'::text[]) t});
ok($postgres->poll(q{select count(*) from pg_stat_cdc_table where state = 'streaming' and last_error is null}, scalar(@tables), 90), 'new copies are in place') or diag($pipeline->describe);
ok($postgres->poll(q{select count(*) from pg_class where relname like 'cdc\_resync\_%'}, '0', 60), 'and no shadow is left');
check_calls('new copies');
is($postgres->psql(q{select v from shop.domained where id = 2}), '{four}', 'rows are there');

done_testing();
