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
like(refused('{"schema_changes": "lenient"}'), qr/invalid value for option "schema_changes" of outgoing pipeline: "lenient"\n.*Valid values are: evolve, ignore, exception/s, 'a word that means something only where tables are kept');
like(refused('{"schema_changes": true}'), qr/Valid values are: evolve, ignore, exception/, 'true and false are no words');
like(refused('{"schema_changes_exclude": ["add_colum"]}'), qr/no kind of schema change/, 'a kind that there is not');
like(refused('{"schema_changes_exclude": ["truncate_table"]}'), qr/Use option "actions"/, 'TRUNCATE is asked for in another way');

# ---- kinds
$export->start->wait_for_state('streaming');
$postgres->psql('alter table shop.a add column w int');
is(told(), '', 'an excluded kind is left out');
$postgres->psql('insert into shop.a values (2, 2, 2)');
$export->wait_for_all;
is((map { $_->{after}{w} } grep { ($_->{op} // '') eq 'c' } $export->records)[0], 2, 'rows have the column all the same');
$postgres->psql('alter table shop.a add column x int, alter column v type bigint');
is(told(), 'a ALTER TABLE', 'a statement that does something else, too, is told');
$postgres->psql('alter table shop.a rename column w to y');
$postgres->psql('create table shop.c (id int primary key)');
is(told(), '', 'renamed columns and new tables are left out');
$postgres->psql("alter table shop.a $_") for 'drop column y', 'alter column x set default 5', 'alter column v set not null', 'owner to current_user', 'replica identity full';
$postgres->psql('alter table shop.c rename to d');
$postgres->psql('drop table shop.d');
is(told(), join(', ', ('a ALTER TABLE') x 5, 'd ALTER TABLE', 'd DROP TABLE'), 'all others are told, and what has no kind');
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"schema_changes_exclude": null, "schema_changes_include": ["drop_column"]}')});
$export->wait_for_state('streaming');
$postgres->psql('alter table shop.b add column w int');
$postgres->psql('alter table shop.b drop column w');
is(told(), 'b ALTER TABLE', 'schema_changes_include: nothing but these');

# ---- exception
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"schema_changes": "exception", "schema_changes_include": null, "schema_changes_exclude": ["alter_default"]}')});
$export->wait_for_state('streaming');
$postgres->psql('alter table shop.b alter column v set default 1; create table shop.e (id int primary key); insert into shop.e values (1)');
is(told(), 'e CREATE TABLE', 'exception: a new table is told, an excluded kind left out');
$postgres->psql('begin; insert into shop.b values (5, 5); alter table shop.b add column w int; insert into shop.b values (6, 6, 6); insert into shop.a values (6, 6, 6); commit');
$postgres->poll("select state from pg_stat_cdc_export_table where table_name = 'b'", 'stopped', 30) or die "it does not stop\n" . $export->describe;
is($postgres->psql("select last_error_sqlstate || ' ' || last_error from pg_stat_cdc_export_table where table_name = 'b'"), 'YC004 table shop.b was changed by ALTER TABLE', 'exception: the table stops');
is(told(), '', 'nothing of it is told');
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
$export->is_replayed('shop', 'b', 'id', 'and rows come as they are');

done_testing();
