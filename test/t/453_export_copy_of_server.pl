# cells: pg15
# A copied data directory, slot and all, beside the original: its outgoing pipeline does not write into the same sink, until somebody says that
# the server was moved.

use strict;
use warnings;

use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres)->setup;
$postgres->psql('create schema shop; create table shop.t (id int primary key, v text)');
$export->start->wait_for_state('streaming');
$postgres->psql("insert into shop.t values (1, 'original')");
$export->wait_for_all;

$postgres->stop;
my $copy = CdcBridge::Postgres->new;

# Its data directory becomes a copy of the original's, which does not run.
sub replace_by
{
	my ($server) = @_;
	$server->stop;
	system('rm', '-rf', "$server->{dir}/data") == 0 && system('cp', '-a', "$postgres->{dir}/data", "$server->{dir}/data") == 0 or die "the data directory cannot be copied\n";
	$server->append_conf("port = $server->{port}\nunix_socket_directories = '$server->{dir}'");
	return;
}
replace_by($copy);
$postgres->start;
$export->wait_for_state('streaming');
$copy->start;
my $clone = bless { %$export, postgres => $copy }, ref $export;
$clone->wait_for_state('failed');
is($clone->status('last_error_sqlstate'), '55000', 'the copy does not ship');
like($clone->status('last_error'), qr/pipeline "shop_out" ran under another server/, 'and says why');
like($clone->status('last_error_hint'), qr/SELECT cdc_start_pipeline\('shop_out', confirm_move => true\).*copy of it: SELECT cdc_drop_pipeline\('shop_out'\)/, 'and what to do');
$copy->psql("insert into shop.t values (2, 'copy')");
$copy->psql("select cdc_start_pipeline('shop_out')");
$clone->wait_for_state('failed');
$postgres->psql("create table public.other as select i, repeat('x', 1000) from generate_series(1, 3000) i; insert into shop.t values (3, 'original')");
$export->wait_for_all;
$export->is_replayed('shop', 't', 'id', 'the sink has what the original did alone');

# ---- moved: by a copy of before, and by one of now
$postgres->stop;
$copy->psql("select cdc_start_pipeline('shop_out', confirm_move => true)");
$clone->wait_for_state('failed');
is($clone->status('last_error_sqlstate'), 'YC001', 'a copy of before the last changes cannot go on');
like($clone->status('last_error_detail'), qr/The sink has everything up to \S+, and the log of this server ends at \S+: it is an older copy/, 'as the sink has more than it') or diag($clone->describe);
replace_by($copy);
$copy->start;
$clone->wait_for_state('failed');
$copy->psql("select cdc_start_pipeline('shop_out', confirm_move => true)");
$clone->wait_for_state('streaming');
$copy->psql("insert into shop.t values (6000, 'moved')");
$clone->wait_for_all;
$clone->is_replayed('shop', 't', 'id', 'and one of now goes on');
$clone->stop->start->wait_for_state('streaming');
pass('that it was moved has to be said once');

done_testing();
