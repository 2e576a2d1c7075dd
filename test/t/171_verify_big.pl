# A large table under load, with planted differences of each kind: each is found with its column, nothing else is, although the
# worker that compares is terminated once and killed once on the way. CDC_VERIFY_ROWS (default 50,000; long tests: 1,000,000).

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;
use Time::HiRes qw(time);

my $rows = $ENV{CDC_VERIFY_ROWS} // 50_000;
my $source = CdcBridge::Source->new(args => ['--sync-binlog=1']);
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create database helper',
	'create table shop.big (id bigint unsigned not null auto_increment primary key, a int, b varchar(60), c decimal(12,3), d datetime(3), e double, f json, g float, h text) default charset utf8mb4',
	'create table helper.n (n int primary key)',
	'insert into helper.n select n from (select ' . join(' + ', map { 10**($_ - 1) . " * d$_.d" } 1 .. 7) . ' n from '
	  . join(' cross join ', map { '(select 0 d' . join('', map { " union all select $_" } 1 .. 9) . ") d$_" } 1 .. 7) . ") x where n < $rows",
	"insert into shop.big select n + 1, n % 1000, concat('row ', n), n / 8, date_add('2024-01-01', interval n * 1234 second), n / 7, json_object('n', n, 'k', n % 10), n / 3, if(n % 20 = 9, '', null) from helper.n");

my $chunk = $rows <= 100_000 ? 250 : 5000;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => "{\"snapshot_chunk_rows\": $chunk}")->setup;
my $seed = $ENV{CDC_SEED} // int(time());
note("seed $seed, $rows rows");
$source->{seed} = $seed;
$pipeline->start->wait_for_state('streaming')->wait_for_tables($rows > 100_000 ? 600 : undef);

# Writers leave every 10th row alone.
$source->start_writers(4, sub {
	my ($dbh) = @_;
	my $id = 1 + int(rand($rows));
	$id++ if $id % 10 == 0;
	my $what = int(rand(10));
	if ($what < 6) { $dbh->do("update shop.big set a = a + 1, e = e * 1.01, f = json_object('n', $id, 'r', rand()) where id = $id"); }
	elsif ($what < 8) { $dbh->do("insert into shop.big (a, b, c) values ($id, 'new', rand())"); }
	elsif ($what < 9) { $dbh->do("delete from shop.big where id = $id"); }
	else { $dbh->do("insert ignore into shop.big (id, a, b) values ($id, 1, 'again')"); }
});

my $step = int($rows / 100) * 10;
my @id = map { $_ * $step } 1 .. 9;
$postgres->psql(join(';',
	"delete from shop.big where id = $id[0]", "update shop.big set a = a + 1 where id = $id[1]", "update shop.big set b = b || ' ' where id = $id[2]",
	"update shop.big set c = c + 0.001 where id = $id[3]", "update shop.big set d = d + '1 ms' where id = $id[4]", "update shop.big set e = e + 1e-9 where id = $id[5]",
	"update shop.big set f = f || '{\"more\": null}' where id = $id[6]", "update shop.big set g = null where id = $id[7]", "update shop.big set h = case when h is null then '' end where id = $id[8]",
	"insert into shop.big (id, a) values (18000000000000000000, 1)", "insert into shop.big (id, a) values (0, 1)"));
my @planted = sort("big: missing {$id[0]}", "big: extra {18000000000000000000}", "big: extra {0}",
	map { "big: different {$id[$_]} {" . substr('_abcdefgh', $_, 1) . '}' } 1 .. 8);

my $request = $postgres->psql("select cdc_verify('shop_in')");
my $pid_query = "select coalesce(max(pid), 0) from pg_stat_cdc_verify where request = $request and state = 'running'";
my $other_than = 0;
for my $how (qw(terminate kill))
{
	my $pid;
	poll_until(sub { (undef, $pid) = $postgres->try_psql($pid_query); return $pid && $pid =~ /^\d+$/ && $pid != $other_than; })
	  or die "no worker is at it\n" . $pipeline->describe;
	$other_than = $pid;
	if ($how eq 'terminate')
	{
		my $began = time();
		$postgres->psql("select pg_terminate_backend($pid)");
		ok($postgres->poll("select count(*) from pg_stat_activity where pid = $pid", '0', 10), 'pg_terminate_backend ends it');
		note(sprintf('after %.2f s', time() - $began));
	}
	else { $postgres->kill9_process($pid); }
}
$pipeline->wait_for_state('streaming');

my $began = time();
my @found = sort grep { !/: \d+ missing, / } split(/\n/, $pipeline->verify_result($request));
note(sprintf('compared in %.1f s: %s', time() - $began, $postgres->psql("select rows_source || ' rows in ' || chunks || ' chunks' from pg_stat_cdc_verify where request = $request")));
is(join("\n", @found), join("\n", @planted), 'each planted difference is found with its column, and nothing else');
is($postgres->psql("select missing || ' ' || extra || ' ' || different || ' ' || unsettled from pg_stat_cdc_verify where request = $request"), '1 2 8 0', 'and counted once');
is($postgres->psql("select method || ' ' || (chunks_by_sum > 0) from pg_stat_cdc_verify where request = $request"), 'columns true', 'by sums beside the columns that have none');
$source->stop_writers;
is($postgres->psql("select count(*) from pg_stat_activity where backend_type = 'cdc_bridge maintenance worker'"), 0, 'the worker left when it was done');

done_testing();
