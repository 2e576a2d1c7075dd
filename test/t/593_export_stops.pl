# One table's trouble stops that table, and no other: a right that is missing, an expression that throws, a name that is taken, in the stream and in a copy.
# What came before is shipped, once, also through kills; cdc_resync_table begins anew; on_error "stop" stops the pipeline instead.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Env qw(slurp);
use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres)->setup;
$postgres->psql(<<'SQL');
create schema shop;
create table shop.a (id int primary key, v int);
create table shop.b (id int primary key, v int);
create table shop.c (id int primary key, v int, secret text);
insert into shop.a select i, i from generate_series(1, 3) i;
insert into shop.b select i, i from generate_series(1, 3) i;
insert into shop.c select i, i from generate_series(1, 3) i;
create role owner_of_it login;
grant usage on schema shop to owner_of_it;
grant select on all tables in schema shop to owner_of_it;
grant usage on foreign server files to owner_of_it;
grant execute on function cdc_create_pipeline to owner_of_it;
set role owner_of_it;
select cdc_create_pipeline('shop_out', sink => 'files', tables => '{shop.*}', options => '{"transforms": [{"tables": "shop.b", "projection": "*, 10 / v AS tenth"}]}');
SQL
$export->{created} = 1;
$export->start->wait_for_state('streaming');
sub table { my ($name, $columns) = @_; return $postgres->psql("select $columns from pg_stat_cdc_export_table where pipeline = 'shop_out' and table_name = '$name'"); }
sub wait_for_stop
{
	my ($name) = @_;
	$postgres->poll("select state from pg_stat_cdc_export_table where pipeline = 'shop_out' and table_name = '$name'", 'stopped', 30) or die "table $name does not stop\n" . $export->describe;
	return;
}

# ---- an expression throws in the middle of a transaction (R8)
$postgres->psql(<<'SQL');
begin;
insert into shop.a values (10, 1);
insert into shop.b values (10, 5);
update shop.b set v = 0 where id = 1;
insert into shop.b values (11, 5);
insert into shop.a values (11, 1);
commit;
insert into shop.b values (12, 5);
insert into shop.a values (12, 1);
SQL
wait_for_stop('b');
$export->wait_for_state('streaming')->wait_for_all;
is(table('b', "last_error_sqlstate || ' ' || last_error"), '22012 column "tenth" of the projection of table shop.b cannot be computed: division by zero', 'R8: an expression that throws stops its table, and the view says why');
is(table('b', 'stop_lsn is not null and stopped_at is not null and last_error_hint is not null'), 't', 'where, when, and what to do');
$export->is_replayed('shop', 'a', 'id', 'the others go on, also in the same transaction');
my %b = $export->replay('shop', 'b', 'id');
is(join(' ', map { "$_=$b{$_}{v}" } sort { $a <=> $b } keys %b), '1=1 2=2 3=3 10=5', 'of the table all that came before is shipped, and nothing from there on');
is($export->status('last_error'), '', 'and the pipeline has no error');
is($export->status('tables_stopped'), '1', 'but says how many tables are stopped');
like($postgres->psql(q{select detail from cdc_check_pipeline('shop_out') where "check" = 'table shop.b'}), qr/^It is stopped at [0-9A-F\/]+: column "tenth"/, 'cdc_check_pipeline tells of it');

# ---- the same after kills
$postgres->kill9_process($export->status('pid'));
$export->wait_for_state('streaming');
$postgres->psql('insert into shop.b values (13, 5); insert into shop.a values (13, 1)');
$postgres->kill9;
$postgres->start;
$export->wait_for_state('streaming')->wait_for_all;
$export->is_replayed('shop', 'a', 'id', 'after kills: the others');
%b = $export->replay('shop', 'b', 'id');
is(join(' ', sort { $a <=> $b } keys %b), '1 2 3 10', 'after kills: it is stopped where it was');

# ---- asked for in vain, in a copy; then mended
$postgres->psql(q{select cdc_resync_table('shop_out', 'shop.b')});
$postgres->poll("select stop_lsn is not null and last_error_sqlstate = '22012' and not exists (select from pg_stat_cdc_export_table t where state = 'snapshot') from pg_stat_cdc_export_table where table_name = 'b'", 't', 30) or die "it does not stop again\n" . $export->describe;
$postgres->psql('update shop.b set v = 4 where id = 1');
for my $id (26, 27)
{
	$postgres->psql("insert into shop.a values ($id, 1)");
	$export->wait_for_all;
}
is(table('b', 'state'), 'stopped', 'mended, it waits to be asked for');
$postgres->psql(q{select cdc_resync_table('shop_out', 'shop.b')});
$postgres->poll("select state from pg_stat_cdc_export_table where table_name = 'b'", 'streaming', 30) or die "it is not copied\n" . $export->describe;
$postgres->psql('insert into shop.b values (20, 10)');
$export->wait_for_all;
%b = $export->replay('shop', 'b', 'id');
is(join(' ', map { "$_=$b{$_}{tenth}" } sort { $a <=> $b } keys %b), '1=2 2=5 3=3 10=2 11=2 12=2 13=2 20=1', 'mended, cdc_resync_table has it begin anew, and it streams');
is(table('b', 'last_error is null and stop_lsn is null'), 't', 'the error is gone');

# ---- a right that is taken away, and one that a new table never had
$postgres->psql('revoke select on shop.c from owner_of_it; update shop.c set secret = \'hidden\' where id = 1');
$postgres->psql('create table shop.d (id int primary key); insert into shop.d values (1)');
wait_for_stop($_) for qw(c d);
$postgres->psql('insert into shop.a values (30, 1)');
$export->wait_for_state('streaming')->wait_for_all;
$export->is_replayed('shop', 'a', 'id', 'a right that is missing on some tables stops these');
like(table($_, "last_error_sqlstate || ' ' || last_error || ' ' || last_error_hint"), qr/^42501 permission denied for table shop\.$_ Run GRANT SELECT/, "table $_ says which GRANT") for qw(c d);
ok(join('', map { slurp($_) } $export->files) !~ /hidden/, 'none of its values is in a file');
$postgres->psql('grant select on shop.c, shop.d to owner_of_it');
$postgres->psql("select cdc_resync_table('shop_out', 'shop.$_')") for qw(c d);
$export->wait_for_state('streaming');
$postgres->poll("select bool_and(state = 'streaming') from pg_stat_cdc_export_table where table_name in ('c', 'd')", 't', 30) or die "they are not copied\n" . $export->describe;
$export->wait_for_all;
$export->is_replayed('shop', $_, 'id', "given back: $_") for qw(c d);

# ---- a rule that does not fit the table any more, and is not mended when the copy is asked for
$postgres->psql('alter table shop.b rename v to vv; insert into shop.b values (50, 5)');
wait_for_stop('b');
is(table('b', 'last_error_sqlstate'), '42703', 'a column that a rule names has another name: the table stops');
$postgres->psql(q{select cdc_resync_table('shop_out', 'shop.b'); insert into shop.a values (51, 1)});
$export->wait_for_state('streaming')->wait_for_all;
$postgres->poll("select state || ' ' || last_error_sqlstate from pg_stat_cdc_export_table where table_name = 'b'", 'stopped 42703', 30) or die "it does not stop again\n" . $export->describe;
$postgres->psql('insert into shop.a values (52, 1)');
$export->wait_for_state('streaming')->wait_for_all;
$export->is_replayed('shop', 'a', 'id', 'asked for in vain: it stops again, alone');
$postgres->psql(q{alter table shop.b rename vv to v; select cdc_resync_table('shop_out', 'shop.b')});
$postgres->poll("select count(*) from pg_stat_cdc_export_table where table_name = 'b' and state = 'streaming'", '1', 30) or die "it is not copied\n" . $export->describe;
$export->wait_for_all;
%b = $export->replay('shop', 'b', 'id');
is("$b{50}{tenth} $b{1}{tenth}", '2 2', 'with the name back it is copied, and streams');

# ---- another table gets the name of a stopped one: the receiver has rows of that one under it
$postgres->psql('update shop.b set v = 0 where id = 1');
wait_for_stop('b');
$postgres->psql('drop table shop.b; create table shop.b (id int primary key, v int); grant select on shop.b to owner_of_it; insert into shop.b values (1, 1)');
$postgres->poll("select count(*) from pg_stat_cdc_export_table where table_name = 'b' and last_error_sqlstate = 'YC004'", '1', 30) or die "the successor does not stop\n" . $export->describe;
like($postgres->psql("select last_error from pg_stat_cdc_export_table where last_error_sqlstate = 'YC004'"), qr/another table was shipped as shop\.b, and is stopped/, 'a successor of a stopped table is not mixed with its rows');
$postgres->psql(q{select cdc_resync_table('shop_out', 'shop.b')});
$postgres->poll("select count(*) from pg_stat_cdc_export_table where table_name = 'b' and state = 'streaming'", '1', 30) or die "the successor is not copied\n" . $export->describe;
$postgres->psql('insert into shop.b values (2, 2)');
$export->wait_for_all;
%b = $export->replay('shop', 'b', 'id');
is(join(' ', map { "$_=$b{$_}{tenth}" } sort keys %b), '1=10 2=5', 'cdc_resync_table takes back what came of the former one');

# ---- on_error "stop"
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"on_error": "stop"}')});
$export->wait_for_state('streaming');
$postgres->psql('update shop.b set v = 0 where id = 1');
$export->wait_for_state('failed');
like($export->status('last_error'), qr/division by zero/, 'on_error "stop": the pipeline stops before it');
is($postgres->psql("select count(*) from pg_stat_cdc_export_table where state = 'stopped' and relid = 'shop.b'::regclass"), '0', 'and the table does not');
$postgres->psql(q{select cdc_alter_pipeline('shop_out', options => '{"transforms": null}')});
$export->start->wait_for_state('streaming')->wait_for_all;
%b = $export->replay('shop', 'b', 'id');
is($b{1}{v}, 0, 'mended, it goes on with that change');

done_testing();
