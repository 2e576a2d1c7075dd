# From MariaDB 11.7 on a large transaction does not go into the log that is open: the file in which it was kept becomes the next file of
# the log, with a padded GTID event in front (binlog_large_commit_threshold). It is mirrored like any other, once, through kills.
# cells: mariadb118-15

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
plan skip_all => 'this server has no such commits' unless $source->is_mariadb && $source->version >= 110700;
my $postgres = CdcBridge::Postgres->new;
$source->sql('set global binlog_large_commit_threshold = 10485760', 'create database shop',
	'create table shop.t (id int primary key, b longblob)', 'create table shop.keyless (a int)', q{insert into shop.t values (1, 'first')});
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables;

# 12 MB, among rows of a table in which nothing may come twice
my $next = 1;
sub large
{
	my ($dbh) = @_;
	$dbh->begin_work;
	$dbh->do('insert into shop.keyless values (' . $next . ')');
	$dbh->do('insert into shop.t values (?, repeat(?, 6000000))', {}, ++$next, 'x') for 1, 2;
	$dbh->do('insert into shop.keyless values (' . $next . ')');
	$dbh->commit;
	$dbh->do('insert into shop.keyless values (0)');
	return;
}
my ($before) = $source->binlog_position;
large($source->dbh);
my ($file, $offset) = $source->binlog_position;
isnt($file, $before, 'the transaction is a file of the log by itself');
cmp_ok($offset, '>', 12000000, 'which has it whole');
cmp_ok((grep { $_->[2] eq 'Gtid' } $source->query_rows("show binlog events in '$file' limit 10"))[0][4], '>=', 4096, 'behind a padded event');
$pipeline->wait_for_catchup;
$pipeline->is_same('a large commit', 't', 'keyless');
like($pipeline->status('applied_file'), qr/^\Q$file\E$/, 'the position is in its file');

# kills of the worker and of the server here while such files come
for my $round (1 .. 2)
{
	my $transactions = $pipeline->status('transactions');
	large($source->dbh);
	poll_until(sub { return $pipeline->status('bytes') > 0 || $pipeline->status('transactions') > $transactions; }, 10) if $round > 1;
	$round == 2 ? $postgres->kill9 : $postgres->kill9_process($pipeline->status('ingest_pid'));
	large($source->dbh);
	$postgres->start if $round == 2;
	$pipeline->wait_for_state('streaming');
}
$pipeline->wait_for_catchup;
$pipeline->is_same('large commits and kills', 't', 'keyless');

# with compressed events
$source->sql('set global log_bin_compress = on');
my $dbh = $source->connect;
large($dbh);
$dbh->do('update shop.t set b = concat(b, id)');
$pipeline->wait_for_catchup;
$pipeline->is_same('compressed', 't', 'keyless');
is($pipeline->status('tables_stopped'), '0', 'no table is stopped');

done_testing();
