# Option schema_changes of outgoing pipelines: evolve, ignore, exception, and kinds that are left out or let in.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres, options => '{"schema_changes_exclude": ["add_column", "rename_column", "create_table"]}')->setup;
$postgres->psql(<<'SQL');
create schema shop;
create table shop.a (id int primary key, v int);
create table shop.b (id int primary key, v int);
create table shop.n (id int primary key);
insert into shop.a values (1, 1);
insert into shop.b values (1, 1);
SQL
my $last_no = 0;

# what the history has since the last time
sub noted
{
	my $rows = $postgres->psql("select change_no, source_table || ' ' || statement || ' {' || array_to_string(kinds, ',') || '} ' || result from cdc_schema_history where pipeline = 'shop_out' and change_no > $last_no order by 1");
	my @rows = map { [ split(/\|/, $_) ] } split(/\n/, $rows);
	$last_no = $rows[-1][0] if @rows;
	return join('; ', map { $_->[1] } @rows);
}

# what schema records say, since the last time
my $seen = 0;
sub told
{
	$export->wait_for_all;
	my @records = grep { $_->{tableChanges} } $export->records;
	my @new = map { my ($name) = $_->{tableChanges}[0]{id} =~ /"(\w+)"$/; "$name " . $_->{command} } @records[ $seen .. $#records ];
	$seen = @records;
	return join(', ', @new);
}
sub refused { my ($options) = @_; return $postgres->psql_error("select cdc_create_pipeline('refused', sink => 'files', tables => '{shop.*}', options => '$options')"); }
like(refused(qq({"schema_changes": "$_"})), qr/0A000: option "schema_changes" of an outgoing pipeline cannot be "$_"\n.*Its sink gets records.*Use "evolve"/s, "$_ says what becomes of tables") for 'lenient', 'try_evolve';
like(refused('{"schema_changes": true}'), qr/Valid values are: evolve, ignore, exception/, 'true and false are no words');
like(refused('{"schema_changes_exclude": ["add_colum"]}'), qr/no kind of schema change/, 'a kind that there is not');
like(refused('{"schema_changes_exclude": ["truncate_table"]}'), qr/Use option "actions"/, 'TRUNCATE is asked for in another way');

# ---- kinds
$export->start->wait_for_state('streaming');
$postgres->psql('alter table shop.a add column w int');
is(told(), '', 'an excluded kind is left out');
is(noted(), 'a ALTER TABLE {add_column} ignored', 'and noted in the history');
is($postgres->psql(q{select source_schema, file ~ '^[0-9A-F]{24}$', "offset" > 0, gtid ~ '^[0-9A-F]+/[0-9A-F]+$', now() - source_time < '1 min', commands, error is null, now() - created_at < '1 min' from cdc_schema_history}),
	'shop|t|t|t|t|{}|t|t', 'with its place and time');
is($postgres->psql(q{select pg_walfile_name(confirmed_lsn) = file from cdc_schema_history, pg_stat_cdc_export}), 't', 'and the file is one of the log');
$postgres->psql('insert into shop.a values (2, 2, 2)');
$export->wait_for_all;
is((map { $_->{after}{w} } grep { ($_->{op} // '') eq 'c' } $export->records)[0], 2, 'rows have the column all the same');
$postgres->psql('alter table shop.a add column x int, alter column v type bigint');
is(told(), 'a ALTER TABLE', 'a statement that does something else, too, is told');
is(noted(), 'a ALTER TABLE {add_column,alter_type} applied', 'and noted');
$postgres->psql('alter table shop.a rename column w to y');
$postgres->psql('create table shop.c (id int primary key)');
is(told(), '', 'renamed columns and new tables are left out');
$postgres->psql("alter table shop.a $_") for 'drop column y', 'alter column x set default 5', 'alter column v set not null', 'owner to current_user', 'replica identity full';
$postgres->psql('alter table shop.c rename to d');
$postgres->psql('drop table shop.d');
is(told(), join(', ', ('a ALTER TABLE') x 5, 'd ALTER TABLE', 'd DROP TABLE'), 'all others are told, and what has no kind');
is(noted(), join('; ', 'a ALTER TABLE {rename_column} ignored', 'c CREATE TABLE {create_table} ignored',
		(map { "a ALTER TABLE {$_} applied" } 'drop_column', 'alter_default', 'alter_nullability', '', 'alter_key'), 'c ALTER TABLE {rename_table} applied', 'd DROP TABLE {drop_table} applied'),
	'the history has each, by the name of before');
$postgres->psql('begin; alter table shop.a add column never int; rollback; create table other_schema (id int primary key)');
$export->wait_for_all;
is(noted(), '', 'what is undone or of no table that is shipped is not noted');
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"schema_changes_exclude": null, "schema_changes_include": ["drop_column"]}')});
$export->wait_for_state('streaming');
$postgres->psql('alter table shop.b add column w int');
$postgres->psql('alter table shop.b drop column w');
is(told(), 'b ALTER TABLE', 'schema_changes_include: nothing but these');
is(noted(), 'b ALTER TABLE {add_column} ignored; b ALTER TABLE {drop_column} applied', 'these are applied, all others ignored');

# ---- exception
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"schema_changes": "exception", "schema_changes_include": null, "schema_changes_exclude": ["alter_default"]}')});
$export->wait_for_state('streaming');
$postgres->psql('alter table shop.b alter column v set default 1; create table shop.e (id int primary key); insert into shop.e values (1)');
is(told(), 'e CREATE TABLE', 'exception: a new table is told, an excluded kind left out');
$postgres->psql('begin; insert into shop.b values (5, 5); alter table shop.b add column w int; insert into shop.b values (6, 6, 6); insert into shop.a values (6, 6, 6); commit');
$postgres->poll("select state from pg_stat_cdc_export_table where table_name = 'b'", 'stopped', 30) or die "it does not stop\n" . $export->describe;
is($postgres->psql("select last_error_sqlstate || ' ' || last_error from pg_stat_cdc_export_table where table_name = 'b'"), 'YC004 table shop.b was changed by ALTER TABLE', 'exception: the table stops');
is(told(), '', 'nothing of it is told');
is(noted(), 'b ALTER TABLE {alter_default} ignored; e CREATE TABLE {create_table} applied; b ALTER TABLE {add_column} stopped', 'the history has what stopped it');
is($postgres->psql("select error_sqlstate, error, error_hint ~ 'cdc_resync_table' from cdc_schema_history where result = 'stopped'"), 'YC004|table shop.b was changed by ALTER TABLE|t', 'with the error');
$postgres->kill9_process($export->status('pid'));
$export->wait_for_state('streaming')->wait_for_all;
is($postgres->psql("select count(*), count(distinct (gtid, \"offset\")) from cdc_schema_history where result = 'stopped'"), '1|1', 'once, also when the log is read again');
my %a = $export->replay('shop', 'a', 'id');
is($a{6}{v}, 6, 'the others go on, in the same transaction');
my %b = $export->replay('shop', 'b', 'id');
is(join(' ', sort keys %b), '1 5', 'of the table comes what was before the statement');
$postgres->psql(q{select cdc_resync_table('shop_out', 'shop.b')});
$postgres->poll("select state from pg_stat_cdc_export_table where table_name = 'b'", 'streaming', 30) or die "it is not copied\n" . $export->describe;
$postgres->psql('insert into shop.b values (7, 7, 7)');
$export->wait_for_all;
$export->is_replayed('shop', 'b', 'id', 'and anew by cdc_resync_table');

# ---- ignore: nobody listens
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"schema_changes": "ignore"}')});
$export->wait_for_state('streaming');
is($postgres->psql("select string_agg(distinct evtenabled::text, '') from pg_event_trigger where evtname like 'cdc_bridge%'"), 'D', 'ignore: the event triggers are off');
$postgres->psql('alter table shop.b add column z int; insert into shop.b values (8, 8, 8, 8)');
is(told(), '', 'nothing is told');
is(noted(), '', 'nor noted');
$export->is_replayed('shop', 'b', 'id', 'and rows come as they are');

# ---- not more than may be
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"schema_changes": "evolve", "schema_changes_exclude": null, "schema_history_max_rows": 3}')});
$export->wait_for_state('streaming');
$postgres->psql("begin; @{[ map { qq{alter table shop.a add column p$_ int;} } 1 .. 5 ]} alter table shop.b rename to f; commit");
$export->wait_for_all;
$postgres->poll("select count(*) from cdc_schema_history", '3', 20);
is($postgres->psql("select string_agg(source_table, ' ' order by change_no) from cdc_schema_history"), 'a a b', 'schema_history_max_rows: the newest of a transaction stay');
$postgres->psql('drop table shop.f');
$export->wait_for_all;
is($postgres->psql("select string_agg(source_table || ' ' || statement, ', ' order by change_no) from cdc_schema_history"), 'a ALTER TABLE, b ALTER TABLE, f DROP TABLE', 'older ones go');
$export->drop;
is($postgres->psql('select count(*) from cdc_bridge.schema_history'), '0', 'they go with their pipeline');

done_testing();
