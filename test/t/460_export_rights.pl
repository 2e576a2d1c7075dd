# cells: pg15 pg18
# Who owns a pipeline must not get by it what he may not SELECT: a right that is taken away stops it before the next change is shipped,
# and given back it goes on by itself, with everything: with option on_error "stop". Without, it is the table that stops (593).

use strict;
use warnings;

use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres)->setup;
$postgres->psql(<<'SQL');
create schema shop;
create table shop.t (id int primary key, name text, secret text);
create table shop.other (id int primary key, name text);
create role readers;
create role owner_of_it login in role readers;
grant usage on schema shop to readers;
grant select on all tables in schema shop to readers;
grant usage on foreign server files to owner_of_it;
grant execute on function cdc_create_pipeline, cdc_start_pipeline, cdc_stop_pipeline, cdc_alter_pipeline to owner_of_it;
set role owner_of_it;
select cdc_create_pipeline('shop_out', sink => 'files', tables => '{shop.*}', options => '{"on_error": "stop"}');
SQL
$export->{created} = 1;
$export->start->wait_for_state('streaming');

my $is_shipped = sub {
	my ($name) = @_;
	$export->wait_for_state('streaming')->wait_for_all->is_replayed('shop', $_, 'id', "$name: table $_") for qw(t other);
	return;
};
my $is_refused = sub {
	my ($secret, $name, $message, $hint) = @_;
	$export->wait_for_status('last_error', qr/$message/);
	is($export->status('last_error_sqlstate'), '42501', "$name: stopped");
	like($export->status('last_error_hint'), $hint, "$name: with what to do");
	my $files = join('', map { CdcBridge::Env::slurp($_) } $export->files);
	unlike($files, qr/$secret\b/, "$name: and nothing of it is in a file, not even behind the last end record");
	return;
};
$postgres->psql("insert into shop.t values (1, 'one', 'a'); insert into shop.other values (1, 'one')");
$is_shipped->('with all rights');

# ---- a table, taken from the role that the owner is a member of

$postgres->psql("revoke select on shop.t from readers; insert into shop.t values (2, 'two', 'hidden1'); insert into shop.other values (2, 'two')");
$is_refused->('hidden1', 'SELECT taken away', qr/permission denied for table shop\.t/, qr/GRANT SELECT ON shop\.t TO owner_of_it/);
$postgres->psql('grant select on shop.t to readers');
$is_shipped->('given back, though not yet when the change was made');

# ---- membership

$postgres->psql("revoke readers from owner_of_it; update shop.t set secret = 'hidden2' where id = 1");
$is_refused->('hidden2', 'membership taken away', qr/permission denied for table shop\.t/, qr/GRANT SELECT/);
$postgres->psql('grant readers to owner_of_it');
$is_shipped->('and given back');

# ---- one column

$postgres->psql("revoke select on shop.t from readers; grant select (id, name) on shop.t to readers; insert into shop.t values (3, 'three', 'hidden3')");
$is_refused->('hidden3', 'one column taken away', qr/permission denied for table shop\.t/, qr/GRANT SELECT \(secret\) ON shop\.t TO owner_of_it/);
$postgres->psql('grant select (secret) on shop.t to owner_of_it');
$is_shipped->('every column given, one by one');
$postgres->psql("alter table shop.t add column more text; update shop.t set more = 'hidden4'");
$is_refused->('hidden4', 'a column that was added', qr/permission denied for table shop\.t/, qr/GRANT SELECT \(more\)/);
$postgres->psql('grant select on shop.t to owner_of_it');
$is_shipped->('the whole table given');

# ---- row-level security

$postgres->psql("alter table shop.t enable row level security; insert into shop.t values (4, 'four', 'hidden5')");
$is_refused->('hidden5', 'row-level security', qr/row-level security of table shop\.t applies/, qr/ALTER ROLE owner_of_it BYPASSRLS/);
$postgres->psql('alter role owner_of_it bypassrls');
$is_shipped->('not for this role');

# ---- or the table is left out

$postgres->psql("alter role owner_of_it nobypassrls; insert into shop.t values (5, 'five', 'hidden6')");
$is_refused->('hidden6', 'BYPASSRLS taken away', qr/row-level security/, qr/cdc_remove_table/);
$postgres->psql("alter table shop.t disable row level security; insert into shop.other values (3, 'three')");
$is_shipped->('without policies again');

# ---- a publication chooses columns: rights on these are enough

$export->stop;
$postgres->psql(<<'SQL');
create table shop.part (id int primary key, open text, secret text);
grant select (id, open) on shop.part to owner_of_it;
create publication chosen for table shop.part (id, open);
SQL
my $chosen = CdcBridge::Export->new(postgres => $postgres, name => 'chosen', server => 'files', dir => $export->{dir}, created => 1);
$postgres->psql("set role owner_of_it; select cdc_create_pipeline('chosen', sink => 'files', tables => '{*.*}', options => '{\"publication_names\": \"chosen\", \"format\": \"json\", \"include_key\": true}')");
$chosen->start->wait_for_state('streaming');
$postgres->psql("insert into shop.part values (1, 'seen', 'hidden'); insert into shop.t values (6, 'six', 'hidden')");
$chosen->wait_for_all;
my @records = $chosen->records;
is(scalar(@records), 1, 'a pipeline of a publication ships what that publishes');
is_deeply($records[0]{key}, { id => 1 }, 'with its key, as asked for');
is_deeply($records[0]{value}{row}, { id => 1, open => 'seen' }, 'and only its columns') or diag(explain(\@records));

done_testing();
