# How a pipeline begins: each value of the options "snapshot" and "on_existing".

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.a (id int primary key, v varchar(20)) default charset utf8mb4',
	'create table shop.b (id int primary key, v varchar(20)) default charset utf8mb4');
sub fill { $source->sql('delete from shop.a', 'delete from shop.b', map { ("insert into shop.a values ($_, 'source')", "insert into shop.b values ($_, 'source')") } 1 .. 60); }
fill();

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup;
my $number = 0;

# Begin a pipeline with OPTIONS anew, with tables as SQL makes them.
sub begin
{
	my ($options, @sql) = @_;
	$pipeline->stop->drop if $pipeline->{created};
	$pipeline->drop_target;
	$postgres->psql(join(';', 'set client_min_messages = warning; create schema shop', @sql)) if @sql;
	fill();
	$pipeline->{options} = $options;
	return $pipeline->start;
}

sub ids { my ($table, $where) = @_; return $postgres->psql("select coalesce(string_agg(id || '=' || v, ' ' order by id), '') from shop.$table" . ($where ? " where $where" : '')); }
my @a = ('create table shop.a (id int primary key, v varchar(20))', q{insert into shop.a values (1, 'old'), (1000, 'old')});

# ---- snapshot

begin('{"snapshot": "schema_only"}')->wait_for_state('streaming');
is(ids('a') . ids('b'), '', 'schema_only: targets are made, nothing is copied');
is($postgres->psql('select count(*) from pg_stat_cdc_snapshot'), 0, 'schema_only: no table shows a copy');
$source->sql(q{update shop.a set v = 'new' where id = 7}, q{insert into shop.a values (61, 'in')}, 'delete from shop.a where id = 8');
$pipeline->wait_for_catchup;
is(ids('a'), '7=new 61=in', 'schema_only: changes come, a row that was not there is inserted');
$pipeline->stop->start->wait_for_state('streaming');
is(ids('a'), '7=new 61=in', 'schema_only: a restart copies nothing either');

begin('{"snapshot": "never"}', @a);
$pipeline->wait_for_table_state('a', 'streaming')->wait_for_table_state('b', 'stopped');
is($pipeline->table_status('b', 'last_error'), 'target table "shop.b" does not exist', 'never: a target that is missing stops its table');
is($pipeline->table_status('b', 'last_error_sqlstate'), '42P01', 'never: SQLSTATE');
$source->sql(q{update shop.a set v = 'new' where id = 1});
$pipeline->wait_for_catchup;
is(ids('a'), '1=new 1000=old', 'never: what is there stays, and follows');
is($postgres->psql(q{select to_regclass('shop.b') is null}), 't', 'never: nothing is made');

begin('{"snapshot": "only"}')->wait_for_state('stopped');
$pipeline->is_same('only: everything is copied');
ok($postgres->poll('select ingest_pid is null and snapshot_workers = 0 from pg_stat_cdc_pipeline', 't'), 'only: no worker runs any more');
is($postgres->psql('select count(*) from pg_stat_cdc_table where state = \'streaming\''), 2, 'only: the tables are handed over');
like($postgres->log_text, qr/pipeline "shop_in" has copied its tables and stops/, 'only: the log says so');
is($pipeline->status('last_error'), '', 'only: that is no error');
$source->sql(q{insert into shop.a values (62, 'later')});
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
$pipeline->is_same('only: started again it follows');
is(ids('a', 'id = 62'), '62=later', 'only: from where it was');
$postgres->psql(q{select cdc_stop_pipeline('shop_in')});
$pipeline->wait_for_state('stopped')->start->wait_for_state('streaming');
is($pipeline->state, 'streaming', 'only: and stays');

# ---- on_existing

begin(undef, @a);
$pipeline->wait_for_table_state('a', 'stopped')->wait_for_table_state('b', 'streaming');
is($pipeline->table_status('a', 'last_error'), 'target table "shop.a" exists and has rows', 'error: rows stop the table');
is(ids('a'), '1=old 1000=old', 'error: and stay as they are');

begin('{"on_existing": "append", "snapshot_chunk_rows": 5}', @a)->wait_for_tables->wait_for_catchup;
is(ids('a', 'id in (1, 2, 1000)'), '1=source 2=source 1000=old', 'append: the source wins over older rows, others stay');
is($postgres->psql('select count(*) from shop.a'), 61, 'append: all rows');
$pipeline->is_same('append: a table that was not there is the same', 'b');

begin('{"on_existing": "truncate"}', @a, q{create view shop.looks as select * from shop.a})->wait_for_tables->wait_for_catchup;
$pipeline->is_same('truncate: older rows are gone', 'a', 'b');
is($postgres->psql('select count(*) from shop.looks'), 60, 'truncate: the table is the same one');

begin('{"on_existing": "replace"}', 'create table shop.a (id text, other int)', q{insert into shop.a values ('x')})->wait_for_tables->wait_for_catchup;
$pipeline->is_same('replace: a table that does not fit is made anew', 'a', 'b');

begin('{"on_existing": "replace"}', @a, q{create view shop.looks as select * from shop.a});
$pipeline->wait_for_table_state('a', 'stopped')->wait_for_table_state('b', 'streaming');
is($pipeline->table_status('a', 'last_error'), 'target table "shop.a" cannot be replaced because other objects depend on it', 'replace: not when something depends on it');
like($pipeline->table_status('a', 'last_error_detail'), qr/view shop\.looks depends on table shop\.a/, 'replace: the detail says what');
is(ids('a'), '1=old 1000=old', 'replace: the table is untouched then');

begin('{"on_existing": "truncate"}', 'create table shop.a (id int primary key, v varchar(20)) partition by range (id)', 'create table shop.a_1 partition of shop.a for values from (0) to (30)',
	'create table shop.a_2 partition of shop.a default', q{insert into shop.a values (1, 'old'), (1000, 'old')})->wait_for_tables->wait_for_catchup;
$pipeline->is_same('truncate: a partitioned table, in all its partitions', 'a', 'b');

# a table of the pipeline's own that is referenced by a foreign key cannot be truncated
begin('{"on_existing": "truncate"}', @a, 'create table shop.refers (a int references shop.a)');
$pipeline->wait_for_table_state('a', 'stopped');
is($pipeline->table_status('a', 'last_error_sqlstate'), '0A000', 'truncate: a table that a foreign key refers to stops');
is(ids('a'), '1=old 1000=old', 'truncate: and keeps its rows');

# ---- rows that the stream brought while the copy runs are newer than the copy, older ones are not

# Under writers, into a table full of older rows with the same keys.
my @old = ('create table shop.a (id int primary key, v varchar(20))', q{insert into shop.a select i, 'old' from generate_series(1, 400) i});
$pipeline->stop->drop->drop_target;
$postgres->psql(join(';', 'create schema shop', @old));
fill();
$source->sql(map { "insert into shop.a values ($_, 'source')" } 61 .. 300);
$source->start_writers(4, sub {
	my ($dbh) = @_;
	my ($id, $to, $v) = (1 + int(rand(300)), 1 + int(rand(300)), 'w' . int(rand(1e6)));
	my @ways = ("update shop.a set v = '$v' where id = $id", "delete from shop.a where id = $id", "replace into shop.a values ($id, '$v')", "update ignore shop.a set id = $to, v = '$v' where id = $id");
	eval { $dbh->do($ways[ rand @ways ]); 1 } or $@ =~ /(deadlock|duplicate|lock wait|record has changed)/i or die $@;
});
$pipeline->{options} = '{"on_existing": "append", "snapshot_chunk_rows": 4, "snapshot_workers": 3, "max_rows_per_second": 400}';
$pipeline->start->wait_for_tables;
$source->stop_writers;
$pipeline->wait_for_catchup;
my %source = map { $_->[0] => $_->[1] } $source->query_rows('select id, v from shop.a');
my %target = map { split(/\|/, $_) } split(/\n/, $postgres->psql('select id, v from shop.a'));
is(join(' ', grep { ($target{$_} // '') ne $source{$_} } sort { $a <=> $b } keys %source), '', 'append under writers: every row of the source is there as it is');
is(join(' ', grep { !exists $target{$_} } 301 .. 400), '', 'append under writers: rows that the source never had stay');
is(join(' ', grep { !exists $source{$_} && $_ <= 300 && $target{$_} ne 'old' } sort { $a <=> $b } keys %target), '', 'append under writers: no row is there that the source has deleted');

# ---- rights

$postgres->psql(q{create role app login; create role other login; grant create on database postgres to app;
	grant usage on foreign server shop to app; create user mapping for app server shop options (username 'repl', password 'repl-secret');
	grant execute on function cdc_start_pipeline, cdc_create_pipeline to app});
$pipeline->stop->drop->drop_target;
fill();
for my $way (qw(truncate replace))
{
	$postgres->psql("set client_min_messages = warning; create schema shop; grant usage, create on schema shop to app;
		create table shop.a (id int primary key, v varchar(20)); insert into shop.a values (1, 'old'); alter table shop.a owner to other;
		grant select, insert, update, delete on shop.a to app");
	$postgres->psql(qq{set role app; select cdc_start_pipeline('mine', source => 'shop', tables => '{shop.a}', options => '{"on_existing": "$way"}')});
	ok($postgres->poll(q{select state from pg_stat_cdc_table where pipeline = 'mine'}, 'stopped'), "$way: a table of another role is refused");
	is($postgres->psql(q{select last_error_sqlstate from pg_stat_cdc_table where pipeline = 'mine'}), '42501', "$way: for lack of rights");
	is(ids('a'), '1=old', "$way: its rows are there");
	$postgres->psql(q{select cdc_drop_pipeline('mine')});
	$pipeline->drop_target;
}

unlike($postgres->log_text, qr/\b(TRAP|PANIC):|terminated by signal/, 'no process crashed');
done_testing();
