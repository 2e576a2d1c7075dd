# What happens to the server of the sink, to publications or to the extension, while an export worker runs; forged messages about the server's own tables;
# and how often a worker wakes when there is nothing to do.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Env qw(new_folder poll_until slurp);
use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres, tables => '{shop.*,pg_catalog.*}')->setup;
$postgres->psql(<<'SQL');
create schema shop;
create table shop.t (id int primary key, name text);
create role owner_of_it login;
grant usage on schema shop to owner_of_it;
grant select on all tables in schema shop to owner_of_it;
grant usage on foreign server files to owner_of_it;
grant execute on function cdc_create_pipeline, cdc_start_pipeline to owner_of_it;
set role owner_of_it;
select cdc_create_pipeline('shop_out', sink => 'files', tables => '{shop.*,pg_catalog.*}');
SQL
$export->{created} = 1;
$export->start->wait_for_state('streaming');
my $row = 0;
my $insert = sub { $row++; $postgres->psql("insert into shop.t values ($row, '$_[0]')"); return; };
my $goes_on = sub { $export->wait_for_state('streaming')->wait_for_all->is_replayed('shop', 't', 'id', $_[0]); return; };
$insert->('first');
$goes_on->('it runs');

# ---- anybody may say that pg_authid was altered: the owner may not read it, and would stop for that

my ($relid, $command) = ("1260", "ALTER TABLE");
my $field = sub { return length($_[0]) . ":$_[0],"; };
my $message = join('', map { $field->($_) } '1', 't', $relid, $command, 'pg_catalog', 'pg_authid', '', '', '', '', '');
$postgres->psql('create role nobody_else login');
$postgres->psql("select pg_logical_emit_message(true, 'cdc_bridge.schema_change', '$message')", user => 'nobody_else');
$insert->('behind it');
$goes_on->('a message about a table of the server stops nothing');
is($export->status('last_error'), '', 'and is no error');
is(scalar(grep { ($_->{source}{table} // '') eq 'pg_authid' } $export->records), 0, 'nor shipped');

# ---- the right to use the server

$postgres->psql('revoke usage on foreign server files from owner_of_it');
$export->wait_for_status('last_error_sqlstate', qr/^42501$/);
like($export->status('last_error'), qr/permission denied for foreign server "files"/, 'USAGE is taken away: a worker that runs hears of it');
$insert->('without the right');
$postgres->psql('grant usage on foreign server files to owner_of_it');
$goes_on->('given back, it goes on');

# ---- the directory

my $other = new_folder('export');
system('chown', '--reference', $export->{dir}, $other);
$postgres->psql("alter server files options (set directory '$other')");
$export->wait_for_state('failed');
like($export->status('last_error'), qr/is empty/, 'another directory: nothing is written there without what was there before');
$insert->('in between');
rename($export->folder, "$other/shop_out") or system('mv', $export->folder, $other) == 0 or die "mv: $!";
my ($pipeline, $before) = ("$other/shop_out", join(',', $export->files));
$export->{dir} = $other;
delete @$export{qw(read records ends replayed)};
$export->start;
$goes_on->('moved there, it goes on');
ok(-s "$pipeline/changes-000000000001.jsonl", 'in the other directory');
my $pid = $export->status('pid');
$postgres->psql("alter server files options (add file_max_kb '128')");
ok($postgres->poll("select pid <> $pid from pg_stat_cdc_export", 't'), 'other options: another worker');
$goes_on->('and nothing is missing');
$pid = $export->status('pid');
$postgres->psql('create server third foreign data wrapper cdc_null; alter server third owner to owner_of_it; create role of_no_matter');
$insert->('other catalogs');
$goes_on->('other servers and roles');
is($export->status('pid'), $pid, 'are none of its business');

# ---- a link that leads into the data directory

$export->stop;
symlink($postgres->dir . '/data', "$other/link") or die "symlink: $!";
$postgres->psql("alter server files options (set directory '$other/link')");
$export->start->wait_for_status('last_error', qr/in the data directory/);
ok(!-e $postgres->dir . '/data/shop_out', 'a link into the data directory is seen, and nothing is made there');
$postgres->psql("alter server files options (set directory '$other')");
$goes_on->('another directory again');
$pid = $export->status('pid');

# ---- nothing to do

my $wakes = sub { return slurp("/proc/$pid/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m ? $1 : die "no worker\n"; };
my $lowest;
ok(poll_until(sub {
	my $start = $wakes->();
	select(undef, undef, undef, 1);
	$lowest = $wakes->() - $start;
	return $lowest < 60;
}), 'a worker with nothing to do sleeps') or diag("$lowest wakes in a second");

# ---- the publication: without it nothing is published, which must not be silent

$postgres->psql("create publication chosen for tables in schema shop; select cdc_alter_pipeline('shop_out', options => '{\"publication_names\": \"chosen\"}')");
$export->wait_for_state('streaming');
$insert->('published');
$goes_on->('by a publication');
$postgres->psql('alter publication chosen rename to taken');
$export->wait_for_status('last_error_sqlstate', qr/^42704$/);
like($export->status('last_error'), qr/publication "chosen" does not exist/, 'a publication that is gone is told while the worker runs');
$postgres->psql('alter publication taken rename to chosen');
$insert->('published again');
$goes_on->('back, it goes on');

# ---- the extension is dropped and made anew: numbers of pipelines and names of slots come again

$postgres->psql('drop extension cdc_bridge cascade');
$postgres->poll('select count(*) from pg_replication_slots', '0') or die "the slot stays\n";
delete $export->{created};
$export->setup->start->wait_for_state('failed');
like($export->status('last_error'), qr/holds what another pipeline has written/, 'files of a former extension are not gone on with');

done_testing();
